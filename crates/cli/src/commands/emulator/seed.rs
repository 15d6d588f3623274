//! The first templates of an emulator, from files.

use std::{io, path::Path};

use anyhow::bail;
use galley_domain::{
    convert::{self, Direction},
    document::Document,
    id::AccountId,
    rulebook::WHATSAPP,
    template::{Review, Template, sample},
    violation::{Rule, Violation, Violations},
};
use galley_store::{Actor, CreateOutcome, NewTemplate, Store, TranslationGroup};
use jiff::Timestamp;

use crate::{
    commands::lint::{
        check::{Severity, check_documents},
        files::InputFiles,
        human,
    },
    terminal,
};

/// Creates the templates in the files of a directory, in the order of their names. Creates none if a
/// file is invalid; the violations are shown at their lines. Returns how many templates were created.
pub(super) async fn create(
    store: &Store,
    account: AccountId,
    directory: &Path,
    at: Timestamp,
) -> anyhow::Result<usize> {
    let templates = read(directory)?;
    let count = templates.len();
    for (file, template) in templates {
        let (name, language) = (template.name().to_owned(), template.language().to_owned());
        let new = NewTemplate {
            account,
            review: Review::Scripted,
            phone: None,
            unique_key: (WHATSAPP.unique_key)(account, &name, &language),
            translation_group: Some(TranslationGroup::of(account, &name)),
            template,
            actor: Actor::Operator,
            trace: None,
            idempotency: None,
            at,
        };
        match store.create_template(new).await? {
            CreateOutcome::Created(_) => {}
            CreateOutcome::NameInUse(_) => {
                bail!("--seed: {file}: another file has the name {name:?} in {language}, too")
            }
            CreateOutcome::CategoryDiffers(category) => bail!(
                "--seed: {file}: the other languages of {name:?} have the category {}",
                category.as_str()
            ),
            refused => bail!("--seed: {file}: the template cannot be created: {refused:?}"),
        }
    }
    Ok(count)
}

/// The templates of all files, each with the name of its file.
fn read(directory: &Path) -> anyhow::Result<Vec<(String, Template)>> {
    if !directory.is_dir() {
        bail!("--seed: {} is not a directory", directory.display());
    }
    let InputFiles { inputs, read_errors, .. } = InputFiles::of(&[directory.to_owned()]);
    if let Some(error) = read_errors.first() {
        bail!("--seed: {}: {}", error.file, error.error);
    }
    let (mut templates, mut invalid) = (Vec::new(), Vec::new());
    for input in inputs {
        let file = input.name();
        let bytes = input
            .read()
            .map_err(|error| anyhow::anyhow!("--seed: {}: {}", error.file, error.error))?;
        let report =
            check_documents(&file, &bytes, |document, diagnostics| match template(document) {
                Ok(template) => templates.push((file.clone(), template)),
                Err(violations) => diagnostics.add_violations(&violations),
            });
        if report.with_severity(Severity::Error).next().is_some() {
            eprint!("{}", human::show(&report, terminal::use_colour(&io::stderr())));
            invalid.push(file);
        }
    }
    if !invalid.is_empty() {
        bail!("--seed: no template was created, because of errors in {}", invalid.join(", "));
    }
    Ok(templates)
}

/// Reads a document of WhatsApp's API, or one of API v1.0, which is converted.
fn template(document: &Document<'_>) -> Result<Template, Violations> {
    let Err(violations) = Template::read(document, &WHATSAPP) else {
        return with_known_samples(document);
    };
    match convert::convert(document, Direction::ToWhatsapp) {
        Ok(converted) => Template::read(&converted.document, &WHATSAPP).map_err(|_| violations),
        Err(_) => Err(violations),
    }
}

/// Reads a valid document, unless it refers to a sample that was uploaded to another Galley.
fn with_known_samples(document: &Document<'_>) -> Result<Template, Violations> {
    let references = sample::references(document.root()).into_iter();
    let unknown = references.filter(|it| sample::is_galley_handle(&it.handle));
    let unknown = unknown.map(|it| Violation {
        pointer: it.pointer,
        rule: Rule::SampleUnknown,
        message: "refers to a file that was not uploaded to this emulator".to_owned(),
        hint: Some("use a handle of Meta, or any text that begins with `4::`".to_owned()),
        span: None,
    });
    match Violations::new(unknown.collect()) {
        Some(violations) => Err(violations),
        None => Template::read(document, &WHATSAPP),
    }
}
