//! `galley account limit`: the limits and quotas of one account.

use anyhow::Context as _;
use galley_store::{Account, AccountLimits, AccountQuotas};
use serde_json::Value;

use crate::{arguments::AccountLimitChoice, commands::CommandContext, table};

/// The largest quota. It leaves room for sums that fit in 64 bits.
const MAX_QUOTA: u64 = 1 << 60;

pub(super) async fn set(
    context: &CommandContext,
    wanted: &str,
    choice: &AccountLimitChoice,
) -> anyhow::Result<()> {
    let templates = choice.templates.as_deref().map(templates).transpose()?;
    let account = context.account(wanted).await?;
    let quotas = chosen_quotas(account.quotas, choice)?;
    if let Some(limits) = templates {
        context.store.set_account_limits(account.id, limits).await?;
    }
    if quotas != account.quotas {
        context.store.set_account_quotas(account.id, quotas).await?;
    }
    let account = Account { limits: templates.unwrap_or(account.limits), quotas, ..account };
    let mut members = vec![("id", account.id.to_string().into())];
    members.extend(shown(&account));
    table::print_one(context.json, &members);
    Ok(())
}

/// The limits of an account, as `account show` displays them.
pub(super) fn shown(account: &Account) -> [(&'static str, Value); 2] {
    let templates = account.limits.map(|limits| limits.templates);
    [
        ("template_limit", templates.map_or(Value::Null, Value::from)),
        ("requests_per_second", optional(account.quotas.requests_per_second)),
    ]
}

fn optional(limit: Option<u64>) -> Value {
    limit.map_or(Value::Null, Value::from)
}

fn templates(given: &str) -> anyhow::Result<Option<AccountLimits>> {
    if given == "none" {
        return Ok(None);
    }
    let templates = given.parse().ok().filter(|limit| *limit > 0);
    let templates = templates
        .with_context(|| format!("expected a number of templates or `none`, not {given:?}"))?;
    Ok(Some(AccountLimits { templates }))
}

/// The quotas with those that the command names replaced.
fn chosen_quotas(
    quotas: AccountQuotas,
    choice: &AccountLimitChoice,
) -> anyhow::Result<AccountQuotas> {
    Ok(AccountQuotas {
        requests_per_second: match choice.requests_per_second.as_deref() {
            None => quotas.requests_per_second,
            Some("none") => None,
            Some(given) => Some(count("--requests-per-second", "or `none`", given)?),
        },
        ..quotas
    })
}

fn count(flag: &str, or: &str, given: &str) -> anyhow::Result<u64> {
    let count = given.parse().ok().filter(|count| (1..=MAX_QUOTA).contains(count));
    count.with_context(|| format!("{flag}: expected a number from 1 {or}, not {given:?}"))
}
