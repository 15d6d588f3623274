//! `galley template …` and `galley review …`.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use galley_domain::{
    document::Document,
    id::TemplateId,
    rulebook::{Category, Rulebook},
    template::{Status, lifecycle::Trigger, review::Decision},
};
use galley_store::{
    Account, Actor, ChangeOutcome, ListQuery, NameFilter, StoredTemplate, TemplateChange,
};
use serde_json::{Value, json};

use super::{Desk, credentials::moment};
use crate::{
    arguments::{ReviewCommand, TemplateCommand, TemplateFilter, Verdict},
    table,
};

/// How many templates are fetched at a time.
const PAGE: usize = 100;

/// How many templates are shown to whoever does not say how many.
const MOST_SHOWN: usize = 1_000;

pub(super) async fn template(desk: &Desk, command: TemplateCommand) -> anyhow::Result<()> {
    match command {
        TemplateCommand::List { account, filter } => {
            let account = desk.account(&account).await?;
            let templates = list(desk, &account, &filter).await?;
            print(desk, &templates, |_| &account);
            Ok(())
        }
        TemplateCommand::Show { id, version } => show(desk, &id, version).await,
    }
}

pub(super) async fn review(desk: &Desk, command: ReviewCommand) -> anyhow::Result<()> {
    match command {
        ReviewCommand::List { account } => pending(desk, account.as_deref()).await,
        ReviewCommand::Approve(verdict) => decide(desk, Trigger::Approve, verdict).await,
        ReviewCommand::Reject(verdict) => decide(desk, Trigger::Reject, verdict).await,
        ReviewCommand::Pause(verdict) => decide(desk, Trigger::Pause, verdict).await,
        ReviewCommand::Resume(verdict) => decide(desk, Trigger::Resume, verdict).await,
        ReviewCommand::Disable(verdict) => decide(desk, Trigger::Disable, verdict).await,
    }
}

/// What waits for a reviewer, in one account or in all.
async fn pending(desk: &Desk, account: Option<&str>) -> anyhow::Result<()> {
    let accounts = match account {
        Some(account) => vec![desk.account(account).await?],
        None => desk.store.accounts().await?,
    };
    let mut waiting = Vec::new();
    for account in &accounts {
        // A version can wait under a pause, too.
        for status in [Status::Pending, Status::Paused] {
            let filter = TemplateFilter { status: Some(status), ..TemplateFilter::default() };
            let mut templates = list(desk, account, &filter).await?;
            templates.retain(|template| template.state.newest == Status::Pending);
            waiting.extend(templates.into_iter().map(|template| (account, template)));
        }
    }
    let (owners, templates): (Vec<&Account>, Vec<StoredTemplate>) = waiting.into_iter().unzip();
    print(desk, &templates, |index| owners[index]);
    Ok(())
}

/// All templates that the filter takes, newest first, up to its limit.
async fn list(
    desk: &Desk,
    account: &Account,
    filter: &TemplateFilter,
) -> anyhow::Result<Vec<StoredTemplate>> {
    let rulebook = Rulebook::by_name(&account.rulebook)
        .with_context(|| format!("this galley does not know the rulebook {}", account.rulebook))?;
    let name = filter.name.as_deref().map(|name| NameFilter::under(rulebook, account.id, name));
    let wanted = filter.limit.unwrap_or(MOST_SHOWN);
    let mut listing = ListQuery {
        name,
        statuses: filter.status.into_iter().collect(),
        categories: filter.category.into_iter().collect(),
        languages: filter.language.clone().into_iter().collect(),
        ..ListQuery::of(account.id, wanted.min(PAGE))
    };
    let mut templates: Vec<StoredTemplate> = Vec::new();
    loop {
        let page = desk.store.list(listing.clone()).await?;
        templates.extend(page.templates);
        listing.after = templates.last().map(|template| template.id);
        if !page.more || templates.len() >= wanted {
            templates.truncate(wanted);
            return Ok(templates);
        }
    }
}

fn print<'a>(desk: &Desk, templates: &[StoredTemplate], owner: impl Fn(usize) -> &'a Account) {
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
            it.updated_at.to_string().into(),
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
    table::print(desk.json, &columns, rows.collect());
}

async fn show(desk: &Desk, id: &str, version: Option<u64>) -> anyhow::Result<()> {
    let (account, stored) = find(desk, id).await?;
    let versions = desk.store.versions(account.id, stored.id, None, MOST_SHOWN).await?;
    let versions = versions.unwrap_or_default();
    let numbers: Vec<u64> = versions.iter().map(|version| version.number).collect();
    let stored = match version {
        Some(number) => {
            let version = versions.into_iter().find(|version| version.number == number);
            let version = version.with_context(|| format!("there is no version {number}"))?;
            Arc::new(stored.showing(version))
        }
        None => stored,
    };
    let content: Value = serde_json::from_str(stored.template.content())?;
    let components = &content["components"];
    // For people one component a line; for programs as it is.
    let components = if desk.json {
        components.clone()
    } else {
        let lines = components.as_array().into_iter().flatten();
        format!("\n  {}", lines.map(Value::to_string).collect::<Vec<_>>().join("\n  ")).into()
    };
    let optional = |value: Option<&str>| value.map_or(Value::Null, Value::from);
    table::print_one(
        desk.json,
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
            ("created_at", moment(Some(stored.created_at))),
            ("updated_at", moment(Some(stored.updated_at))),
            ("components", components),
        ],
    );
    Ok(())
}

async fn decide(desk: &Desk, trigger: Trigger, verdict: Verdict) -> anyhow::Result<()> {
    let Verdict { id, version, reason } = verdict;
    if let Some(reason) = &reason {
        // The same rules as on the API.
        let document = json!({"decision": trigger.as_str(), "reason": reason}).to_string();
        let read = Decision::read(&Document::parse(document.as_bytes())?);
        if let Err(violations) = read {
            let told: Vec<&str> = violations.listed().iter().map(|it| &*it.message).collect();
            bail!("the reason {}", told.join(", and "));
        }
    }
    let (account, stored) = find(desk, &id).await?;
    let seen = stored.state.version;
    if let Some(version) = version
        && version != seen
    {
        bail!("the newest version of {id} is {seen}, not {version}: look at it first");
    }
    let change = TemplateChange {
        account: account.id,
        id: stored.id,
        // The version that was compared is the one that is decided on.
        expected: Some(vec![stored.revision]),
        review: account.review,
        actor: Actor::Operator,
        at: desk.now,
    };
    let now = match desk.store.review_template(change, trigger, reason).await? {
        ChangeOutcome::Done(now) => now,
        ChangeOutcome::InvalidTransition(refusal) => {
            let possible: Vec<&str> = refusal.possible.iter().map(|it| it.as_str()).collect();
            bail!(
                "{id} is {}: it cannot {} now; possible are {}",
                refusal.status.as_str(),
                trigger.as_str(),
                possible.join(", ")
            )
        }
        ChangeOutcome::Outdated(_) => bail!("{id} has changed this very moment: look at it again"),
        _ => bail!("there is no template {id} any more"),
    };
    table::print_one(
        desk.json,
        &[
            ("id", now.id.to_string().into()),
            ("status", now.state.status().as_str().into()),
            ("version", now.state.version.into()),
            ("live_version", now.state.live_version().map_or(Value::Null, Value::from)),
        ],
    );
    Ok(())
}

/// A template by its id, of whatever account.
async fn find(desk: &Desk, id: &str) -> anyhow::Result<(Account, Arc<StoredTemplate>)> {
    let wanted: Option<TemplateId> = id.parse().ok();
    if let Some(wanted) = wanted {
        for account in desk.store.accounts().await? {
            if let Some(stored) = desk.store.template(account.id, wanted).await? {
                return Ok((account, stored));
            }
        }
    }
    bail!("there is no template {id}; `galley template list ACCOUNT` shows them")
}
