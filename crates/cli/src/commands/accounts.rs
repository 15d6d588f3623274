//! `galley account …` and `galley phone …`.

mod deletion;
mod limits;

use anyhow::{Context as _, bail};
use galley_domain::{
    account::{self, Scope, Scopes},
    emulator::EmulatorKind,
    rulebook::{Rulebook, WHATSAPP},
    template::Review,
};
use galley_store::{
    AccountLimits, AddPhoneOutcome, CreateAccountOutcome, CredentialKind, NewAccount,
    RenameAccountOutcome, SetReviewOutcome,
};
use serde_json::Value;

use super::{CommandContext, credentials};
use crate::{
    arguments::{AccountChange, AccountCommand, AccountSecrets, EmulatorChoice, PhoneCommand},
    secrets::{self, file},
    table, terminal,
};

pub(super) async fn account(
    context: &CommandContext,
    command: AccountCommand,
) -> anyhow::Result<()> {
    match command {
        AccountCommand::Create { name, phones, rulebook, review, kind, secrets } => {
            let AccountSecrets { key, key_file, token, token_file } = secrets;
            let flags = ["--key-file", "--token-file"];
            file::require_one_from_standard_input([&key_file, &token_file], flags)?;
            let key =
                secret("API key", file::given(key, key_file.as_deref())?, account::prefix::KEY)?;
            let token = file::given(token, token_file.as_deref())?;
            let token = secret("access token", token, account::prefix::TOKEN)?;
            let mut new = new_account(context, name, phones, &rulebook, &review, [&key, &token])?;
            if let Some(kind) = emulator_kind(&kind, &rulebook)? {
                become_emulator(&mut new, kind);
                new.limits = emulator_limits(kind);
            }
            create(context, new, key, token).await
        }
        AccountCommand::List => list(context).await,
        AccountCommand::Show { account } => show(context, &account).await,
        AccountCommand::Limit { account, choice } => limits::set(context, &account, &choice).await,
        AccountCommand::Rename { account, name } => rename(context, &account, name).await,
        AccountCommand::Change { account, change } => {
            self::change(context, &account, &change).await
        }
        AccountCommand::Delete { account, yes } => deletion::delete(context, &account, yes).await,
        AccountCommand::Disable { account } => set_disabled(context, &account, true).await,
        AccountCommand::Enable { account } => set_disabled(context, &account, false).await,
    }
}

fn secret(what: &str, given: Option<String>, prefix: &str) -> anyhow::Result<String> {
    match given {
        Some(secret) => secrets::chosen(what, secret),
        None => secrets::random(prefix),
    }
}

fn new_account(
    context: &CommandContext,
    name: String,
    phones: Vec<String>,
    rulebook: &str,
    review: &str,
    [key, token]: [&str; 2],
) -> anyhow::Result<NewAccount> {
    check_name(&name)?;
    if let Some(invalid) = phones.iter().find(|phone| !account::is_valid_path_segment(phone)) {
        bail!(
            "{invalid:?} is not a phone number id: use 1 to 256 of the characters A-Z a-z 0-9 . _ ~ + -"
        );
    }
    let known = || Rulebook::ALL.iter().map(|it| it.name).collect::<Vec<_>>().join(", ");
    let rulebook = Rulebook::by_name(rulebook)
        .with_context(|| format!("there is no rulebook {rulebook:?}; use one of {}", known()))?;
    let review = parse_review(review)?;
    Ok(NewAccount {
        id: None,
        name,
        rulebook: rulebook.name,
        review,
        emulator: None,
        limits: None,
        phones,
        credentials: credentials::first_pair(key, token),
        only_if_first: false,
        by: context.author(),
    })
}

/// The kind of emulator that the flags ask for.
fn emulator_kind(choice: &EmulatorChoice, rulebook: &str) -> anyhow::Result<Option<EmulatorKind>> {
    if choice.emulator && rulebook != WHATSAPP.name {
        bail!("an emulator account has the rulebook `whatsapp`: add --rulebook whatsapp");
    }
    Ok(choice.emulator.then_some(EmulatorKind { faithful: choice.faithful }))
}

/// Makes a new account an emulator whose token also controls it.
pub(super) fn become_emulator(new: &mut NewAccount, kind: EmulatorKind) {
    new.emulator = Some(kind);
    new.review = Review::Scripted;
    for credential in new.credentials.iter_mut().filter(|it| it.kind == CredentialKind::Token) {
        credential.scopes = Scopes::of(credential.scopes.iter().chain([Scope::Emulator]));
    }
}

/// The limits that a new emulator account has: a faithful one those of a verified business.
pub(super) fn emulator_limits(kind: EmulatorKind) -> Option<AccountLimits> {
    kind.faithful.then_some(AccountLimits::VERIFIED)
}

fn check_name(name: &str) -> anyhow::Result<()> {
    account::check_account_name(name)
        .map_err(|error| anyhow::anyhow!("the name of an account {error}"))
}

fn parse_review(review: &str) -> anyhow::Result<Review> {
    let is_choice = |it: &Review| Review::CHOICES.contains(&it.as_str());
    Review::parse(review)
        .filter(is_choice)
        .with_context(|| format!("--review must be auto or manual, not {review:?}"))
}

async fn create(
    context: &CommandContext,
    new: NewAccount,
    key: String,
    token: String,
) -> anyhow::Result<()> {
    let (name, phones) = (new.name.clone(), new.phones.clone());
    let id = match context.store.create_account(new).await? {
        CreateAccountOutcome::Created(id, _) => id,
        CreateAccountOutcome::NameTaken => bail!("an account named {name:?} already exists"),
        CreateAccountOutcome::PhoneTaken(phone) => {
            bail!("the phone number {phone} belongs to another account")
        }
        CreateAccountOutcome::SecretTaken(kind) => {
            bail!("this {} is already in use", kind.as_str())
        }
        CreateAccountOutcome::NotFirst => bail!("the store already has accounts"),
    };
    let phone = match phones.into_iter().next() {
        Some(phone) => phone,
        // The account accepts any unclaimed id; suggest a random one.
        None => secrets::phone()?,
    };
    table::print_one(
        context.json,
        &[
            ("account_id", id.to_string().into()),
            ("phone_number_id", phone.into()),
            ("key", key.into()),
            ("token", token.into()),
        ],
    );
    if !context.json {
        table::print_line("\nThe key and the token are shown only once.");
    }
    Ok(())
}

async fn list(context: &CommandContext) -> anyhow::Result<()> {
    let rows = context.store.accounts().await?.into_iter().map(|account| {
        vec![
            account.id.to_string().into(),
            account.name.into(),
            account.rulebook.into(),
            account.review.as_str().into(),
            emulator(account.emulator),
            account.usage.template_bytes.map_or(Value::Null, Value::from),
            account.created_at.to_string().into(),
            account.disabled_at.map_or(Value::Null, |at| at.to_string().into()),
        ]
    });
    let columns = [
        "id",
        "name",
        "rulebook",
        "review",
        "emulator",
        "stored_bytes",
        "created_at",
        "disabled_at",
    ];
    table::print(context.json, &columns, rows.collect());
    Ok(())
}

/// The kind of an emulator account; null for others.
fn emulator(kind: Option<EmulatorKind>) -> Value {
    kind.map_or(Value::Null, |kind| if kind.faithful { "faithful" } else { "standard" }.into())
}

async fn show(context: &CommandContext, wanted: &str) -> anyhow::Result<()> {
    let account = context.account(wanted).await?;
    let phones = context.store.phones(account.id).await?;
    let ids = async |kind| -> anyhow::Result<Value> {
        let all = context.store.credentials(account.id).await?.into_iter();
        Ok(all.filter(|it| it.kind == kind).map(|it| Value::from(it.id.0)).collect())
    };
    let mut members = vec![
        ("id", account.id.to_string().into()),
        ("name", account.name.clone().into()),
        ("rulebook", account.rulebook.clone().into()),
        ("review", account.review.as_str().into()),
        ("emulator", emulator(account.emulator)),
        ("four_eyes", account.four_eyes.into()),
    ];
    members.extend(limits::shown(&account));
    members.extend(limits::usage(&account));
    members.extend([
        ("takes_any_phone", account.takes_any_phone.into()),
        ("phones", phones.into()),
        ("keys", ids(CredentialKind::Key).await?),
        ("tokens", ids(CredentialKind::Token).await?),
        ("created_at", account.created_at.to_string().into()),
        ("disabled_at", credentials::timestamp(account.disabled_at)),
    ]);
    table::print_one(context.json, &members);
    Ok(())
}

async fn rename(context: &CommandContext, wanted: &str, name: String) -> anyhow::Result<()> {
    check_name(&name)?;
    let account = context.account(wanted).await?;
    match context.store.rename_account(account.id, name.clone(), context.author()).await? {
        RenameAccountOutcome::Renamed => {}
        RenameAccountOutcome::NameTaken => bail!(
            "another account is named {name:?}; choose another name, or rename that account first"
        ),
        RenameAccountOutcome::NotFound => bail!("the account no longer exists"),
    }
    table::print_one(context.json, &[("id", account.id.to_string().into()), ("name", name.into())]);
    Ok(())
}

/// Changes the settings that are named.
async fn change(
    context: &CommandContext,
    wanted: &str,
    change: &AccountChange,
) -> anyhow::Result<()> {
    let review = change.review.as_deref().map(parse_review).transpose()?;
    let account = context.account(wanted).await?;
    let mut members = vec![("id", Value::from(account.id.to_string()))];
    if let Some(review) = review {
        match context.store.set_account_review(account.id, review, context.author()).await? {
            SetReviewOutcome::Set => {}
            SetReviewOutcome::Emulator => {
                bail!(
                    "a script reviews the templates of an emulator account, so its review cannot be changed; review rules decide: PUT {{base}}/emulator/rules"
                )
            }
            SetReviewOutcome::NotAnEmulator => {
                bail!("only an emulator account can have the review `scripted`")
            }
            SetReviewOutcome::NotFound => bail!("the account no longer exists"),
        }
        members.push(("review", review.as_str().into()));
    }
    if let Some(four_eyes) = &change.four_eyes {
        let is_on = four_eyes == "on";
        if !context.store.set_account_four_eyes(account.id, is_on, context.author()).await? {
            bail!("the account no longer exists");
        }
        members.push(("four_eyes", is_on.into()));
        if is_on && review.unwrap_or(account.review) == Review::Auto {
            terminal::print_warning(
                "the account approves new versions without a reviewer; `galley account change --review manual` lets a person decide",
            );
        }
    }
    table::print_one(context.json, &members);
    Ok(())
}

async fn set_disabled(
    context: &CommandContext,
    wanted: &str,
    disabled: bool,
) -> anyhow::Result<()> {
    let account = context.account(wanted).await?;
    context.store.set_account_disabled(account.id, disabled, context.author()).await?;
    let state = if disabled { "disabled" } else { "enabled" };
    table::print_one(
        context.json,
        &[("id", account.id.to_string().into()), ("state", state.into())],
    );
    Ok(())
}

pub(super) async fn phone(context: &CommandContext, command: PhoneCommand) -> anyhow::Result<()> {
    match command {
        PhoneCommand::Add { account, phone } => {
            if !account::is_valid_path_segment(&phone) {
                bail!(
                    "{phone:?} is not a phone number id: use 1 to 256 of the characters A-Z a-z 0-9 . _ ~ + -"
                );
            }
            let account = context.account(&account).await?;
            match context.store.add_phone(account.id, &phone, context.author()).await? {
                AddPhoneOutcome::Added | AddPhoneOutcome::AlreadyOwned => {}
                AddPhoneOutcome::OwnedByOther => {
                    bail!("the phone number {phone} belongs to another account")
                }
                AddPhoneOutcome::TooMany => bail!("the account has the maximum of phone numbers"),
                AddPhoneOutcome::NoAccount => bail!("the account no longer exists"),
            }
            let members =
                [("account_id", account.id.to_string().into()), ("phone_number_id", phone.into())];
            table::print_one(context.json, &members);
        }
        PhoneCommand::Remove { account, phone } => {
            let account = context.account(&account).await?;
            if !context.store.remove_phone(account.id, &phone, context.author()).await? {
                bail!(
                    "the account does not own the phone number {phone}: `galley phone list` lists its numbers"
                );
            }
            let members =
                [("account_id", account.id.to_string().into()), ("removed", phone.into())];
            table::print_one(context.json, &members);
            if !context.json {
                table::print_line(
                    "\nTemplates that were created for the number stay. Another account can claim it now.",
                );
            }
        }
        PhoneCommand::List { account } => {
            let account = context.account(&account).await?;
            let phones = context.store.phones(account.id).await?;
            table::print(
                context.json,
                &["phone_number_id"],
                phones.into_iter().map(|it| vec![it.into()]).collect(),
            );
        }
    }
    Ok(())
}
