//! Tests of the decisions about templates that need no database.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category::{self, Marketing, Utility},
    template::{
        Review, Status, Template,
        edit::Edit,
        lifecycle::{EventType, Hold, State, Trigger},
        quality::Quality,
    },
};
use jiff::Timestamp;

use super::{Siblings, plan, plan_edit};
use crate::{Actor, ChangeOutcome, StoredTemplate, TemplateChange, template_rows::Planned};

const ACCOUNT: u64 = 1;

fn id(id: u64) -> TemplateId {
    TemplateId::new(id).unwrap()
}

/// An approved template of the category UTILITY at revision 3.
#[expect(clippy::disallowed_methods, reason = "the tests need stored templates without a store")]
fn stored(id: u64, allow_category_change: bool) -> StoredTemplate {
    let (name, language) = ("hello".to_owned(), "en".to_owned());
    StoredTemplate {
        id: self::id(id),
        phone: None,
        template: Template::restore(name, language, Utility, allow_category_change, "{}".into()),
        state: State {
            version: 2,
            newest_status: Status::Approved,
            approved_version: Some(2),
            hold: None,
        },
        previous_category: None,
        announced_category: None,
        quality: Quality::Unknown,
        reason: None,
        decided_by: None,
        revision: 3,
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: Timestamp::UNIX_EPOCH,
    }
}

fn change(expected: Option<Vec<u64>>) -> TemplateChange {
    TemplateChange {
        account: AccountId::new(ACCOUNT).unwrap(),
        id: id(1),
        expected,
        version: None,
        review: Review::Auto,
        actor: Actor::Operator,
        trace: None,
        at: Timestamp::UNIX_EPOCH,
    }
}

fn planned(stored: StoredTemplate) -> Planned {
    plan(&change(None), Trigger::Edit, Some(stored), None).ok().unwrap()
}

fn recategorise(category: Category) -> Edit {
    Edit::Replace { content: None, category: Some(category) }
}

#[test]
fn another_revision_is_refused_before_an_impossible_transition() {
    let mut disabled = stored(1, true);
    disabled.state.hold = Some(Hold::Disabled);
    let refusal =
        plan(&change(Some(vec![1, 2])), Trigger::Edit, Some(disabled.clone()), None).err();
    assert_eq!(refusal, Some(ChangeOutcome::RevisionMismatch(3)));
    let refusal = plan(&change(Some(vec![2, 3])), Trigger::Edit, Some(disabled), None).err();
    assert!(matches!(refusal, Some(ChangeOutcome::InvalidTransition(_))), "{refusal:?}");
}

#[test]
fn a_new_category_adds_an_event_and_a_revision() {
    for (category, kinds) in [
        (Utility, vec![EventType::Edited]),
        (Marketing, vec![EventType::Edited, EventType::CategoryChanged]),
    ] {
        let edit = recategorise(category);
        let edit = plan_edit(planned(stored(1, true)), &edit, None).ok().unwrap();
        assert_eq!(edit.planned.revision(), 3 + kinds.len() as u64);
        assert_eq!(edit.planned.previous_category(), (category != Utility).then_some(Utility));
        let change = change(None);
        let events: Vec<_> = edit.planned.events(&change, None).collect();
        assert_eq!(events.iter().map(|event| event.kind).collect::<Vec<_>>(), kinds);
        assert!(events.iter().all(|event| event.category == category && event.version == 3));
    }
}

#[test]
fn only_an_approval_or_a_rejection_decides_on_the_newest_version() {
    for (trigger, is_decision) in
        [(Trigger::Approve, true), (Trigger::Reject, true), (Trigger::Disable, false)]
    {
        let mut pending = stored(1, true);
        pending.state.newest_status = Status::Pending;
        let planned = plan(&change(None), trigger, Some(pending), None).ok().unwrap();
        assert_eq!(planned.is_decision(), is_decision, "{trigger:?}");
    }
}

#[test]
fn a_category_changes_unless_its_group_or_a_live_version_keeps_it() {
    let refusal = |siblings, hold| {
        let mut stored = stored(1, true);
        stored.state.hold = hold;
        let edit = recategorise(Marketing);
        plan_edit(planned(stored), &edit, None).ok().unwrap().category_refusal(siblings)
    };
    let alone = Siblings { has_group: true, has_others: false };
    assert_eq!(refusal(Siblings::default(), None), None);
    assert_eq!(refusal(alone, None), Some(ChangeOutcome::LiveCategory(Utility)));
    assert_eq!(refusal(alone, Some(Hold::Paused)), None, "no version is live");
    let paused = Some(Hold::Paused);
    assert_eq!(
        refusal(Siblings { has_others: true, ..alone }, paused),
        Some(ChangeOutcome::GroupCategory(Utility))
    );
}

#[test]
fn a_locked_category_is_refused_and_may_be_named_again() {
    let (other, same) = (recategorise(Marketing), recategorise(Utility));
    let refusal = plan_edit(planned(stored(1, false)), &other, None).err();
    assert_eq!(refusal, Some(ChangeOutcome::CategoryLocked(Utility)));
    let edit = plan_edit(planned(stored(1, false)), &same, None).ok().unwrap();
    let others = Siblings { has_group: true, has_others: true };
    assert_eq!(edit.category_refusal(others), None);
}
