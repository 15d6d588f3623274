//! `galley account limit`: the limits and quotas of one account.

use anyhow::Context as _;
use galley_store::{
    Account, AccountLimits, AccountQuotas, AccountUsage, DEFAULT_PHONE_NUMBERS,
    DEFAULT_STORED_BYTES, Quota,
};
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
        context.store.set_account_limits(account.id, limits, context.author()).await?;
    }
    if quotas != account.quotas {
        context.store.set_account_quotas(account.id, quotas, context.author()).await?;
    }
    let account = Account { limits: templates.unwrap_or(account.limits), quotas, ..account };
    let mut members = vec![("id", account.id.to_string().into())];
    members.extend(shown(&account));
    table::print_one(context.json, &members);
    Ok(())
}

/// The limits of an account, as `account show` displays them.
pub(super) fn shown(account: &Account) -> [(&'static str, Value); 4] {
    let AccountQuotas { requests_per_second, stored_bytes, phone_numbers } = account.quotas;
    let templates = account.limits.map(|limits| limits.templates);
    [
        ("template_limit", templates.map_or(Value::Null, Value::from)),
        ("requests_per_second", optional(requests_per_second)),
        ("stored_bytes_limit", optional(stored_bytes.max(DEFAULT_STORED_BYTES))),
        ("phone_number_limit", optional(phone_numbers.max(DEFAULT_PHONE_NUMBERS))),
    ]
}

/// What an account stores, as `account show` displays it.
pub(super) fn usage(account: &Account) -> [(&'static str, Value); 2] {
    let AccountUsage { template_bytes, media_bytes } = account.usage;
    [("stored_bytes", optional(template_bytes)), ("media_bytes", media_bytes.into())]
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
            Some(given) => Some(count("--requests-per-second", "`none`", given)?),
        },
        stored_bytes: match choice.stored_bytes.as_deref() {
            None => quotas.stored_bytes,
            Some(given) => quota(given, |given| size("--stored-bytes", given))?,
        },
        phone_numbers: match choice.phone_numbers.as_deref() {
            None => quotas.phone_numbers,
            Some(given) => {
                quota(given, |given| count("--phone-numbers", "`none` or `default`", given))?
            }
        },
    })
}

fn quota(given: &str, parse: impl FnOnce(&str) -> anyhow::Result<u64>) -> anyhow::Result<Quota> {
    match given {
        "none" => Ok(Quota::Unlimited),
        "default" => Ok(Quota::Default),
        given => parse(given).map(Quota::Max),
    }
}

/// A number of bytes, such as 20GiB.
fn size(flag: &str, given: &str) -> anyhow::Result<u64> {
    const UNITS: [(&str, u32); 5] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("", 0)];
    let parsed = UNITS.iter().find_map(|(unit, shift)| {
        let count: u64 = given.strip_suffix(unit)?.trim_end().parse().ok()?;
        count.checked_mul(1 << shift).filter(|bytes| (1..=MAX_QUOTA).contains(bytes))
    });
    parsed.with_context(|| {
        format!(
            "{flag}: expected bytes with the unit KiB, MiB, GiB or TiB, such as 20GiB, or `none` or `default`, not {given:?}"
        )
    })
}

fn count(flag: &str, or: &str, given: &str) -> anyhow::Result<u64> {
    let count = given.parse().ok().filter(|count| (1..=MAX_QUOTA).contains(count));
    count
        .with_context(|| format!("{flag}: expected a number of at least 1, or {or}, not {given:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_or_is_a_number_of_bytes() {
        for (given, bytes) in [("1", 1), ("20GiB", 20 << 30), ("3 MiB", 3 << 20), ("1TiB", 1 << 40)]
        {
            assert_eq!(size("--stored-bytes", given).unwrap(), bytes, "{given}");
        }
        for given in ["", "0", "-1", "1.5GiB", "20GB", "GiB", "99999999TiB", "20 gib"] {
            let error = size("--stored-bytes", given).unwrap_err().to_string();
            assert!(error.starts_with("--stored-bytes: expected"), "{error}");
        }
    }
}
