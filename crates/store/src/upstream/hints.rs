//! Hints of webhooks: which templates have to be read, and what no read shows.

use std::collections::BTreeMap;

use galley_domain::{
    id::AccountId,
    upstream::{Hint, RemoteId, hints::StatusInfo},
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{mirror, one};
use crate::{HintReport, MirroredTemplate, Store, StoreFuture, engine::values};

impl Store {
    /// Records what webhooks say: what no read shows is kept, and the templates will be read. Needs
    /// no lease.
    pub fn record_hints(
        &self,
        account: AccountId,
        hints: Vec<Hint>,
        at: Timestamp,
    ) -> StoreFuture<'_, HintReport> {
        self.write("record_hints", (account, hints, at), |&(account, ref hints, at), tx| {
            Box::pin(async move {
                let templates = HintedInfo::of_each(hints);
                if !tx.lock(account).await? || one(tx, account).await?.is_none() {
                    return Ok(HintReport::default());
                }
                let rows = mirror::several(tx, account, templates.keys()).await?;
                // No sweep is made for templates with the name of generated ones: they come and go.
                let is_unknown = |(id, info): &(&RemoteId, &HintedInfo)| {
                    !info.has_generated_name && rows.iter().all(|row| row.id != **id)
                };
                let unknown = templates.iter().filter(is_unknown).count();
                for row in rows.iter().filter(|row| !row.is_generated()) {
                    let update = "UPDATE upstream_template SET dirty_at = $3, info = $4 \
                                  WHERE account_id = $1 AND remote_id = $2";
                    let info = templates.get(&row.id).and_then(|it| it.stored(row.info.as_deref()));
                    tx.defer(
                        update,
                        &values![account, row.id.as_str(), next_dirty(row.dirty_at, at), info],
                    )?;
                }
                if unknown > 0 {
                    let update = "UPDATE upstream SET sweep_wanted = true WHERE account_id = $1";
                    tx.defer(update, &values![account])?;
                }
                Ok(HintReport { known: rows.len(), unknown })
            })
        })
    }
}

/// What webhooks say about a template.
#[derive(Debug, Default)]
struct HintedInfo {
    /// What only they say.
    own: Map<String, Value>,
    /// Whether its name is like those of templates that the provider generates.
    has_generated_name: bool,
}

impl HintedInfo {
    /// Coalesces hints about each template, in the order in which they arrived.
    fn of_each(hints: &[Hint]) -> BTreeMap<RemoteId, Self> {
        let mut templates = BTreeMap::<_, Self>::new();
        for hint in hints {
            let Some(template) = hint.template() else { continue };
            let info = templates.entry(template.id.clone()).or_default();
            info.own.extend(own_info(hint));
            info.has_generated_name |= template.has_generated_name();
        }
        templates
    }

    /// What is stored, given what was stored before; `None` if there is nothing.
    fn stored(&self, before: Option<&str>) -> Option<String> {
        let before = before.and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
        let mut info = before.unwrap_or_default();
        info.extend(self.own.clone());
        (!info.is_empty()).then(|| Value::Object(info).to_string())
    }
}

/// How many seconds the clock of a provider may be before or behind this one.
const CLOCK_SECONDS: i64 = 2;

/// When a template is read once more that may have been read in the second in which the provider
/// changed it. Providers tell the time of a change in seconds: another change in that second shows in
/// no header, so that the template is read when the second is over, by both clocks.
pub(crate) fn after_second(updated_at: Option<Timestamp>, at: Timestamp) -> Option<Timestamp> {
    let second = updated_at?.as_second();
    let next = Timestamp::from_second(second.checked_add(1 + CLOCK_SECONDS)?).ok()?;
    (at.as_second().abs_diff(second) <= CLOCK_SECONDS.unsigned_abs()).then_some(next)
}

/// The time to which a read that failed is postponed: the first full second, by which
/// [`next_dirty`] knows it.
pub(crate) fn postponed_to(until: Timestamp) -> Timestamp {
    let is_second = until.as_millisecond().rem_euclid(1_000) == 0;
    let second = until.as_second().saturating_add(i64::from(!is_second));
    Timestamp::from_second(second).unwrap_or(until)
}

/// The reason to read a template that is left after a read for the reason `asked`: another one, which
/// came since. Times are compared as they are stored, in milliseconds.
pub(crate) fn unsettled(
    dirty_at: Option<Timestamp>,
    asked: Option<Timestamp>,
) -> Option<Timestamp> {
    let asked = asked.map(Timestamp::as_millisecond);
    dirty_at.filter(|dirty_at| Some(dirty_at.as_millisecond()) != asked)
}

/// The time of the newest reason to read a template: later than the one before, so that a read that
/// began earlier does not settle it. No read began for a reason that is postponed.
pub(crate) fn next_dirty(before: Option<Timestamp>, at: Timestamp) -> Timestamp {
    // It was read in the second of its last change, or its read failed: both times are full seconds.
    let is_postponed = |it: &Timestamp| *it > at && it.as_millisecond().rem_euclid(1_000) == 0;
    let before = before.filter(|before| !is_postponed(before));
    let after = before.and_then(|before| {
        Timestamp::from_millisecond(before.as_millisecond().saturating_add(1)).ok()
    });
    after.map_or(at, |after| after.max(at))
}

impl MirroredTemplate {
    /// Whether something may have changed at the provider since the template was read: there is a
    /// reason to read it, also if that is postponed because a read failed. One that waits for the end
    /// of the second of its last change is none yet.
    pub fn may_have_changed(&self, at: Timestamp) -> bool {
        self.dirty_at.is_some_and(|dirty_at| dirty_at <= at) || self.has_unread_change()
    }

    /// Whether there is a reason to read the template besides a look after the second of its last
    /// change: the status may be that of another content.
    pub(crate) fn has_unread_change(&self) -> bool {
        let second_look = after_second(self.remote_updated_at, self.observed_at);
        self.dirty_at.is_some() && self.dirty_at != second_look
    }
}

/// What only the webhook says, under Meta's names.
fn own_info(hint: &Hint) -> Map<String, Value> {
    let mut info = Map::new();
    match hint {
        Hint::Status { info: status, .. } => {
            let StatusInfo { rejection, recommendation, title, description, disabled_at } = status;
            if rejection.is_some() || recommendation.is_some() {
                let value = json!({"reason": rejection, "recommendation": recommendation});
                info.insert("rejection_info".to_owned(), value);
            }
            if title.is_some() || description.is_some() {
                let value = json!({"title": title, "description": description});
                info.insert("other_info".to_owned(), value);
            }
            if let Some(at) = disabled_at {
                let value = json!({"disable_date": at.as_second()});
                info.insert("disable_info".to_owned(), value);
            }
        }
        Hint::Category { category_update_timestamp: Some(at), .. } => {
            info.insert("category_update_timestamp".to_owned(), at.as_second().into());
        }
        Hint::Category { .. } | Hint::Quality { .. } | Hint::Components { .. } | Hint::Other => {}
    }
    info
}

#[cfg(test)]
mod tests {
    use galley_domain::upstream::read_hook;

    use super::*;

    fn hints(changes: &str) -> Vec<Hint> {
        let body = format!(
            r#"{{"object":"whatsapp_business_account","entry":[{{"id":"9","changes":[{changes}]}}]}}"#
        );
        read_hook(body.as_bytes(), "9").unwrap()
    }

    const REJECTED: &str = r#"{"field":"message_template_status_update","value":{
        "message_template_id":7,"event":"REJECTED","rejection_info":{"reason":"a","recommendation":"b"}}}"#;
    const ANNOUNCED: &str = r#"{"field":"template_category_update","value":{
        "message_template_id":7,"correct_category":"MARKETING","category_update_timestamp":1790000000}}"#;
    const EDITED: &str = r#"{"field":"message_template_components_update","value":{
        "message_template_id":8}}"#;

    #[test]
    fn hints_about_one_template_are_one_reason_to_read_it() {
        let templates =
            HintedInfo::of_each(&hints(&[REJECTED, EDITED, ANNOUNCED, EDITED].join(",")));
        let ids: Vec<&str> = templates.keys().map(RemoteId::as_str).collect();
        assert_eq!(ids, ["7", "8"]);
        let [seven, eight] = ["7", "8"].map(|id| RemoteId::parse(id).unwrap());
        let info =
            templates[&seven].stored(Some(r#"{"other_info":1,"rejection_info":2}"#)).unwrap();
        let info: Value = serde_json::from_str(&info).unwrap();
        assert_eq!(
            info,
            json!({
                "other_info": 1, "category_update_timestamp": 1_790_000_000,
                "rejection_info": {"reason": "a", "recommendation": "b"},
            })
        );
        assert_eq!(templates[&eight].stored(None), None);
    }

    #[test]
    fn each_reason_to_read_a_template_is_later_than_the_one_before() {
        let at = |millisecond| Timestamp::from_millisecond(millisecond).unwrap();
        assert_eq!(next_dirty(None, at(5)), at(5));
        assert_eq!(next_dirty(Some(at(5)), at(5)), at(6));
        assert_eq!(next_dirty(Some(at(9)), at(5)), at(10));
        assert_eq!(next_dirty(Some(at(1)), at(5)), at(5));
    }

    #[test]
    fn a_template_that_was_read_in_the_second_of_its_change_is_read_after_it() {
        let at = |millisecond| Timestamp::from_millisecond(millisecond).unwrap();
        for seen_at in [5_000, 6_999, 7_000, 7_999, 9_999] {
            assert_eq!(after_second(Some(at(7_000)), at(seen_at)), Some(at(10_000)), "{seen_at}");
        }
        for seen_at in [4_999, 10_000] {
            assert_eq!(after_second(Some(at(7_000)), at(seen_at)), None, "{seen_at}");
        }
        assert_eq!(after_second(None, at(7_000)), None);
        assert_eq!(next_dirty(Some(at(8_000)), at(7_500)), at(7_500), "there is a reason now");
    }

    #[test]
    fn a_new_reason_ends_the_postponement_of_a_read_that_failed() {
        let at = |millisecond| Timestamp::from_millisecond(millisecond).unwrap();
        for (until, expected) in [(899_001, 900_000), (900_000, 900_000), (900_001, 901_000)] {
            assert_eq!(postponed_to(at(until)), at(expected));
            assert_eq!(next_dirty(Some(at(expected)), at(5)), at(5));
        }
        assert_eq!(next_dirty(Some(at(900_000)), at(900_000)), at(900_001), "it may be read now");
    }

    #[test]
    fn a_read_settles_the_reason_that_it_was_made_for_and_no_other() {
        let at = |millisecond| Timestamp::from_millisecond(millisecond).unwrap();
        let now = Timestamp::from_nanosecond(5_000_001).unwrap();
        for (dirty_at, asked, expected) in [
            (None, None, None),
            (None, Some(at(5)), None),
            (Some(at(5)), Some(at(5)), None),
            (Some(at(5)), Some(now), None),
            (Some(at(6)), Some(at(5)), Some(at(6))),
            (Some(at(4)), Some(at(5)), Some(at(4))),
            (Some(at(5)), None, Some(at(5))),
        ] {
            assert_eq!(unsettled(dirty_at, asked), expected, "{dirty_at:?} {asked:?}");
        }
    }
}
