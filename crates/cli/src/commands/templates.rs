//! `galley template …` and `galley review …`.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use galley_domain::{
    document::{Document, raw},
    id::TemplateId,
    rulebook::{Category, Rulebook},
    template::{Status, lifecycle::Trigger, review::Decision},
};
use galley_store::{Account, ChangeOutcome, ListQuery, NameFilter, StoredTemplate};
use serde_json::{Value, json};

use super::{CommandContext, credentials::timestamp};
use crate::{
    arguments::{ReviewArguments, ReviewCommand, TemplateCommand, TemplateFilter},
    table,
};

/// Number of templates read from the store at a time.
const PAGE_SIZE: usize = 100;

/// Number of templates or versions shown by default.
const DEFAULT_LIMIT: usize = 1_000;

pub(super) async fn template(
    context: &CommandContext,
    command: TemplateCommand,
) -> anyhow::Result<()> {
    match command {
        TemplateCommand::List { account, filter } => {
            let account = context.account(&account).await?;
            let templates = list(context, &account, &filter).await?;
            print(context, &templates, |_| &account);
            Ok(())
        }
        TemplateCommand::Show { id, version } => show(context, &id, version).await,
    }
}

pub(super) async fn review(context: &CommandContext, command: ReviewCommand) -> anyhow::Result<()> {
    match command {
        ReviewCommand::List { account } => pending(context, account.as_deref()).await,
        ReviewCommand::Approve(arguments) => decide(context, Trigger::Approve, arguments).await,
        ReviewCommand::Reject(arguments) => decide(context, Trigger::Reject, arguments).await,
        ReviewCommand::Pause(arguments) => decide(context, Trigger::Pause, arguments).await,
        ReviewCommand::Resume(arguments) => decide(context, Trigger::Resume, arguments).await,
        ReviewCommand::Disable(arguments) => decide(context, Trigger::Disable, arguments).await,
    }
}

/// Lists the templates that are waiting for a reviewer, in one account or in all.
async fn pending(context: &CommandContext, account: Option<&str>) -> anyhow::Result<()> {
    let accounts = match account {
        Some(account) => vec![context.account(account).await?],
        None => context.store.accounts().await?,
    };
    let mut waiting = Vec::new();
    for account in &accounts {
        // The newest version of a paused template can be pending, too.
        for status in [Status::Pending, Status::Paused] {
            let filter = TemplateFilter { status: Some(status), ..TemplateFilter::default() };
            let mut templates = list(context, account, &filter).await?;
            templates.retain(|template| template.state.newest_status == Status::Pending);
            waiting.extend(templates.into_iter().map(|template| (account, template)));
        }
    }
    let (owners, templates): (Vec<&Account>, Vec<StoredTemplate>) = waiting.into_iter().unzip();
    print(context, &templates, |index| owners[index]);
    Ok(())
}

/// The templates that match the filter, newest first, up to its limit.
pub(super) async fn list(
    context: &CommandContext,
    account: &Account,
    filter: &TemplateFilter,
) -> anyhow::Result<Vec<StoredTemplate>> {
    let rulebook = Rulebook::by_name(&account.rulebook).with_context(|| {
        format!("this version of Galley does not know the rulebook {}", account.rulebook)
    })?;
    let name =
        filter.name.as_deref().map(|name| NameFilter::for_rulebook(rulebook, account.id, name));
    let wanted = filter.limit.unwrap_or(DEFAULT_LIMIT);
    let mut query = ListQuery {
        name,
        statuses: filter.status.into_iter().collect(),
        categories: filter.category.into_iter().collect(),
        languages: filter.language.clone().into_iter().collect(),
        ..ListQuery::new(account.id, wanted.min(PAGE_SIZE))
    };
    let mut templates: Vec<StoredTemplate> = Vec::new();
    loop {
        let page = context.store.list(query.clone()).await?;
        templates.extend(page.templates);
        query.after = templates.last().map(|template| template.id);
        if !page.has_next || templates.len() >= wanted {
            templates.truncate(wanted);
            return Ok(templates);
        }
    }
}

fn print<'a>(
    context: &CommandContext,
    templates: &[StoredTemplate],
    owner: impl Fn(usize) -> &'a Account,
) {
    let rows = templates.iter().enumerate().map(|(index, it)| {
        vec![
            it.id.to_string().into(),
            owner(index).name.clone().into(),
            it.template.name().into(),
            it.template.language().into(),
            it.template.category().as_str().into(),
            it.state.status().as_str().into(),
            it.state.version.into(),
            it.state.live_version().map_or(Value::Null, Value::from),
            timestamp(Some(it.updated_at)),
        ]
    });
    let columns = [
        "id",
        "account",
        "name",
        "language",
        "category",
        "status",
        "version",
        "live_version",
        "updated_at",
    ];
    table::print(context.json, &columns, rows.collect());
}

async fn show(context: &CommandContext, id: &str, version: Option<u64>) -> anyhow::Result<()> {
    let (account, stored) = find(context, id).await?;
    let versions = context.store.versions(account.id, stored.id, None, DEFAULT_LIMIT).await?;
    let numbers: Vec<u64> = versions.iter().flatten().map(|version| version.number).collect();
    let stored = match version {
        Some(number) => {
            let version = context.store.version(account.id, stored.id, number).await?;
            let version = version.with_context(|| format!("there is no version {number}"))?;
            Arc::new(stored.at_version(version))
        }
        None => stored,
    };
    // Only the components are parsed: other fields can contain any JSON.
    let members = raw::members(stored.template.content()).unwrap_or_default();
    let components = members.iter().find(|(name, _)| name == "components");
    let components: Value = serde_json::from_str(components.map_or("[]", |(_, text)| text))?;
    // One component per line for people, unchanged for programs.
    let components = if context.json {
        components
    } else {
        let lines = components.as_array().into_iter().flatten();
        format!("\n  {}", lines.map(Value::to_string).collect::<Vec<_>>().join("\n  ")).into()
    };
    let optional = |value: Option<&str>| value.map_or(Value::Null, Value::from);
    table::print_one(
        context.json,
        &[
            ("id", stored.id.to_string().into()),
            ("account", account.name.into()),
            ("name", stored.template.name().into()),
            ("language", stored.template.language().into()),
            ("category", stored.template.category().as_str().into()),
            ("previous_category", optional(stored.previous_category.map(Category::as_str))),
            ("allow_category_change", stored.template.allow_category_change().into()),
            ("status", stored.state.status().as_str().into()),
            ("reason", optional(stored.reason.as_deref())),
            ("phone_number_id", optional(stored.phone.as_deref())),
            ("version", stored.state.version.into()),
            ("live_version", stored.state.live_version().map_or(Value::Null, Value::from)),
            ("versions", numbers.into()),
            ("created_at", timestamp(Some(stored.created_at))),
            ("updated_at", timestamp(Some(stored.updated_at))),
            ("components", components),
        ],
    );
    Ok(())
}

async fn decide(
    context: &CommandContext,
    trigger: Trigger,
    arguments: ReviewArguments,
) -> anyhow::Result<()> {
    let ReviewArguments { id, version, reason } = arguments;
    if let Some(reason) = &reason {
        // The same rules as in the API.
        let document = json!({"decision": trigger.as_str(), "reason": reason}).to_string();
        let read = Decision::read(&Document::parse(document.as_bytes())?);
        if let Err(violations) = read {
            let messages: Vec<&str> = violations.listed().iter().map(|it| &*it.message).collect();
            bail!("the reason {}", messages.join(", and "));
        }
    }
    let (account, stored) = find(context, &id).await?;
    let newest = stored.state.version;
    if let Some(version) = version
        && version != newest
    {
        bail!("the newest version of {id} is {newest}, not {version}: review it first");
    }
    // The decision applies to the version that was compared above and is printed here.
    let (name, language) = (stored.template.name(), stored.template.language());
    let decision = format!("{} version {newest} of {name} ({language})", trigger.as_str());
    eprintln!("{}", table::visible(&decision));
    let change = context.change(&account, &stored);
    let now = match context.store.review_template(change, trigger, reason).await? {
        ChangeOutcome::Done(now) => now,
        ChangeOutcome::InvalidTransition(refusal) => {
            let possible: Vec<&str> = refusal.possible.iter().map(|it| it.as_str()).collect();
            bail!(
                "{id} is {}: `{}` is not possible; possible: {}",
                refusal.status.as_str(),
                trigger.as_str(),
                possible.join(", ")
            )
        }
        ChangeOutcome::RevisionMismatch(_) => {
            bail!("{id} was changed at the same time: review it again")
        }
        _ => bail!("template {id} no longer exists"),
    };
    table::print_one(
        context.json,
        &[
            ("id", now.id.to_string().into()),
            ("status", now.state.status().as_str().into()),
            ("version", now.state.version.into()),
            ("live_version", now.state.live_version().map_or(Value::Null, Value::from)),
        ],
    );
    Ok(())
}

/// Finds a template by id in all accounts.
async fn find(
    context: &CommandContext,
    id: &str,
) -> anyhow::Result<(Account, Arc<StoredTemplate>)> {
    let wanted: Option<TemplateId> = id.parse().ok();
    if let Some(wanted) = wanted {
        for account in context.store.accounts().await? {
            if let Some(stored) = context.store.template(account.id, wanted).await? {
                return Ok((account, stored));
            }
        }
    }
    bail!("there is no template {id}; run `galley template list ACCOUNT`")
}
