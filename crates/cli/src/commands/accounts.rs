//! `galley account …` and `galley phone …`.

use anyhow::{Context as _, bail};
use galley_domain::{account, rulebook::Rulebook, template::Review};
use galley_store::{
    AccountLimits, AddPhoneOutcome, CreateAccountOutcome, CredentialKind, NewAccount, NewCredential,
};
use serde_json::Value;

use super::{Desk, credentials};
use crate::{
    arguments::{AccountCommand, PhoneCommand},
    secrets, table,
};

pub(super) async fn account(desk: &Desk, command: AccountCommand) -> anyhow::Result<()> {
    match command {
        AccountCommand::Create { name, phones, rulebook, review, key, token } => {
            let key = secret("API key", key, "gk_")?;
            let token = secret("access token", token, "gt_")?;
            let new = new_account(desk, name, phones, &rulebook, &review, [&key, &token])?;
            create(desk, new, key, token).await
        }
        AccountCommand::List => list(desk).await,
        AccountCommand::Show { account } => show(desk, &account).await,
        AccountCommand::Limit { account, templates } => limit(desk, &account, &templates).await,
        AccountCommand::Disable { account } => set_disabled(desk, &account, true).await,
        AccountCommand::Enable { account } => set_disabled(desk, &account, false).await,
    }
}

fn secret(what: &str, given: Option<String>, prefix: &str) -> anyhow::Result<String> {
    match given {
        Some(secret) => secrets::given(what, secret),
        None => secrets::random(prefix),
    }
}

fn new_account(
    desk: &Desk,
    name: String,
    phones: Vec<String>,
    rulebook: &str,
    review: &str,
    [key, token]: [&str; 2],
) -> anyhow::Result<NewAccount> {
    if name.trim().is_empty() || name.chars().count() > 200 {
        bail!("an account's name has 1 to 200 characters");
    }
    if name.chars().any(char::is_control) {
        bail!("an account's name holds no control characters");
    }
    if let Some(odd) = phones.iter().find(|phone| !account::is_segment(phone)) {
        bail!(
            "{odd:?} cannot be a phone number id: 1 to 256 of the characters A-Z a-z 0-9 . _ ~ + -"
        );
    }
    let known = || Rulebook::ALL.iter().map(|it| it.name).collect::<Vec<_>>().join(", ");
    let rulebook = Rulebook::by_name(rulebook)
        .with_context(|| format!("there is no rulebook {rulebook:?}; known: {}", known()))?;
    let review = Review::parse(review)
        .with_context(|| format!("review is auto or manual, not {review:?}"))?;
    Ok(NewAccount {
        name,
        rulebook: rulebook.name,
        review,
        phones,
        credentials: vec![
            NewCredential::lasting(CredentialKind::Key, key),
            NewCredential::lasting(CredentialKind::Token, token),
        ],
        only_as_first: false,
        at: desk.now,
    })
}

async fn create(desk: &Desk, new: NewAccount, key: String, token: String) -> anyhow::Result<()> {
    let (name, phones) = (new.name.clone(), new.phones.clone());
    let id = match desk.store.create_account(new).await? {
        CreateAccountOutcome::Created(id, _) => id,
        CreateAccountOutcome::NameTaken => bail!("an account named {name:?} exists already"),
        CreateAccountOutcome::PhoneTaken(phone) => {
            bail!("the phone number {phone} belongs to another account")
        }
        CreateAccountOutcome::SecretTaken(kind) => {
            bail!("this {} is in use already", kind.as_str())
        }
        CreateAccountOutcome::NotFirst => bail!("there are accounts already"),
    };
    let phone = match phones.into_iter().next() {
        Some(phone) => phone,
        // It takes any that nobody else has; this one will do.
        None => secrets::phone()?,
    };
    table::print_one(
        desk.json,
        &[
            ("account_id", id.to_string().into()),
            ("phone_number_id", phone.into()),
            ("key", key.into()),
            ("token", token.into()),
        ],
    );
    if !desk.json {
        table::say("\nThe key and the token are shown this once.");
    }
    Ok(())
}

async fn list(desk: &Desk) -> anyhow::Result<()> {
    let rows = desk.store.accounts().await?.into_iter().map(|account| {
        vec![
            account.id.to_string().into(),
            account.name.into(),
            account.rulebook.into(),
            account.review.as_str().into(),
            account.created_at.to_string().into(),
            account.disabled_at.map_or(Value::Null, |at| at.to_string().into()),
        ]
    });
    let columns = ["id", "name", "rulebook", "review", "created_at", "disabled_at"];
    table::print(desk.json, &columns, rows.collect());
    Ok(())
}

async fn show(desk: &Desk, wanted: &str) -> anyhow::Result<()> {
    let account = desk.account(wanted).await?;
    let phones = desk.store.phones(account.id).await?;
    let of = async |kind| -> anyhow::Result<Value> {
        let all = desk.store.credentials(account.id).await?.into_iter();
        Ok(all.filter(|it| it.kind == kind).map(|it| Value::from(it.id.0)).collect())
    };
    table::print_one(
        desk.json,
        &[
            ("id", account.id.to_string().into()),
            ("name", account.name.clone().into()),
            ("rulebook", account.rulebook.clone().into()),
            ("review", account.review.as_str().into()),
            ("template_limit", template_limit(account.limits)),
            ("takes_any_phone", account.takes_any_phone.into()),
            ("phones", phones.into()),
            ("keys", of(CredentialKind::Key).await?),
            ("tokens", of(CredentialKind::Token).await?),
            ("created_at", account.created_at.to_string().into()),
            ("disabled_at", credentials::moment(account.disabled_at)),
        ],
    );
    Ok(())
}

async fn limit(desk: &Desk, wanted: &str, templates: &str) -> anyhow::Result<()> {
    let limits = match templates {
        "none" => None,
        number => {
            let templates = number.parse().ok().filter(|most| *most > 0);
            let templates = templates
                .with_context(|| format!("a number of templates or none, not {number:?}"))?;
            Some(AccountLimits { templates })
        }
    };
    let account = desk.account(wanted).await?;
    desk.store.set_account_limits(account.id, limits).await?;
    table::print_one(
        desk.json,
        &[("id", account.id.to_string().into()), ("template_limit", template_limit(limits))],
    );
    Ok(())
}

fn template_limit(limits: Option<AccountLimits>) -> Value {
    limits.map_or(Value::Null, |limits| limits.templates.into())
}

async fn set_disabled(desk: &Desk, wanted: &str, disabled: bool) -> anyhow::Result<()> {
    let account = desk.account(wanted).await?;
    desk.store.set_account_disabled(account.id, disabled.then_some(desk.now)).await?;
    let state = if disabled { "disabled" } else { "enabled" };
    table::print_one(desk.json, &[("id", account.id.to_string().into()), ("state", state.into())]);
    Ok(())
}

pub(super) async fn phone(desk: &Desk, command: PhoneCommand) -> anyhow::Result<()> {
    match command {
        PhoneCommand::Add { account, phone } => {
            if !account::is_segment(&phone) {
                bail!(
                    "{phone:?} cannot be a phone number id: 1 to 256 of the characters A-Z a-z 0-9 . _ ~ + -"
                );
            }
            let account = desk.account(&account).await?;
            match desk.store.add_phone(account.id, &phone, desk.now).await? {
                AddPhoneOutcome::Added | AddPhoneOutcome::Owned => {}
                AddPhoneOutcome::Taken => {
                    bail!("the phone number {phone} belongs to another account")
                }
                AddPhoneOutcome::NoAccount => bail!("the account is gone"),
            }
            let members =
                [("account_id", account.id.to_string().into()), ("phone_number_id", phone.into())];
            table::print_one(desk.json, &members);
        }
        PhoneCommand::List { account } => {
            let account = desk.account(&account).await?;
            let phones = desk.store.phones(account.id).await?;
            table::print(
                desk.json,
                &["phone_number_id"],
                phones.into_iter().map(|it| vec![it.into()]).collect(),
            );
        }
    }
    Ok(())
}
