//! The transitions: which are possible, and what they do.

use super::*;

const REVIEWS: [Review; 5] =
    [Review::Auto, Review::Manual, Review::Scripted, Review::Provider, Review::InHouseThenProvider];

fn all_states() -> Vec<State> {
    let mut states = Vec::new();
    for newest_status in [Pending, Approved, Rejected] {
        for approved_version in [None, Some(1), Some(2)] {
            for hold in [None, Some(Hold::Paused), Some(Hold::Disabled), Some(Hold::Archived)] {
                let possible = (newest_status == Approved) == (approved_version == Some(2))
                    && !(newest_status == Pending && hold == Some(Hold::Archived));
                states.extend(possible.then_some(State {
                    version: 2,
                    newest_status,
                    approved_version,
                    hold,
                }));
            }
        }
    }
    states
}

#[test]
fn at_most_one_row_applies_to_a_state_and_trigger() {
    for state in all_states() {
        for review in REVIEWS {
            let mut possible = state.possible_triggers(review);
            let before = possible.len();
            possible.dedup();
            assert_eq!(possible.len(), before, "{state:?}");
        }
    }
}

#[test]
fn a_template_awaits_review_exactly_while_a_decision_is_possible() {
    for state in all_states() {
        let possible = state.possible_triggers(Review::Manual);
        assert_eq!(state.is_awaiting_review(), possible.contains(&Trigger::Approve), "{state:?}");
    }
}

#[test]
fn exactly_the_possible_triggers_succeed() {
    for state in all_states() {
        for value in Trigger::VALUES {
            let trigger = Trigger::parse(value).unwrap();
            for review in REVIEWS {
                let is_possible = state.possible_triggers(review).contains(&trigger);
                assert_eq!(
                    state.apply(trigger, review).is_ok(),
                    is_possible,
                    "{state:?} {value} {review:?}"
                );
            }
        }
    }
}

#[test]
fn a_pending_or_rejected_edit_leaves_the_approved_version_live() {
    let state = State::initial(Review::Auto);
    let (edited, event) = state.apply(Trigger::Edit, Review::Manual).unwrap();
    assert_eq!((edited.status(), edited.live_version()), (Pending, Some(1)));
    assert_eq!(event, EventType::Edited);
    let (rejected, _) = edited.apply(Trigger::Reject, Review::Manual).unwrap();
    assert_eq!((rejected.status(), rejected.live_version()), (Rejected, Some(1)));
    let (approved, _) = edited.apply(Trigger::Approve, Review::Manual).unwrap();
    assert_eq!((approved.status(), approved.live_version()), (Approved, Some(2)));
}

#[test]
fn a_hold_hides_the_live_version_and_survives_an_edit() {
    let (paused, _) = State::initial(Review::Auto).apply(Trigger::Pause, Review::Auto).unwrap();
    assert_eq!((paused.status(), paused.live_version()), (Paused, None));
    let (edited, _) = paused.apply(Trigger::Edit, Review::Auto).unwrap();
    assert_eq!((edited.status(), edited.live_version()), (Paused, None));
    let (resumed, _) = edited.apply(Trigger::Resume, Review::Auto).unwrap();
    assert_eq!((resumed.status(), resumed.live_version()), (Approved, Some(2)));
    let (pending, _) = paused.apply(Trigger::Edit, Review::Manual).unwrap();
    let (resumed, _) = pending.apply(Trigger::Resume, Review::Manual).unwrap();
    assert_eq!((resumed.status(), resumed.live_version()), (Pending, Some(1)));
}

#[test]
fn an_edit_of_a_paused_template_can_be_approved_during_the_pause() {
    let (paused, _) = State::initial(Review::Auto).apply(Trigger::Pause, Review::Manual).unwrap();
    assert!(paused.apply(Trigger::Approve, Review::Manual).is_err(), "no version is pending");
    let (edited, _) = paused.apply(Trigger::Edit, Review::Manual).unwrap();
    let (approved, event) = edited.apply(Trigger::Approve, Review::Manual).unwrap();
    assert_eq!((approved.status(), approved.live_version()), (Paused, None));
    assert_eq!(event, EventType::Approved);
    let (resumed, _) = approved.apply(Trigger::Resume, Review::Manual).unwrap();
    assert_eq!((resumed.status(), resumed.live_version()), (Approved, Some(2)));
}

#[test]
fn a_never_approved_template_cannot_be_paused_and_a_disabled_one_can_only_be_deleted() {
    let pending = State::initial(Review::Manual);
    let refused = pending.apply(Trigger::Pause, Review::Manual).unwrap_err();
    assert_eq!(refused.status, Pending);
    let possible: Vec<&str> = refused.possible.iter().map(|it| it.as_str()).collect();
    assert_eq!(possible, ["edit", "approve", "reject", "disable", "delete"]);
    let (disabled, _) = pending.apply(Trigger::Disable, Review::Manual).unwrap();
    assert_eq!(disabled.possible_triggers(Review::Manual), [Trigger::Delete]);
}

#[test]
fn an_archived_template_can_only_be_unarchived_or_deleted() {
    for state in all_states().into_iter().filter(|it| it.hold == Some(Hold::Archived)) {
        for review in [Review::Auto, Review::Manual, Review::Scripted] {
            let possible = state.possible_triggers(review);
            assert_eq!(possible, [Trigger::Delete, Trigger::Unarchive], "{state:?}");
        }
    }
    let approved = State::initial(Review::Auto);
    let (archived, event) = approved.apply(Trigger::Archive, Review::Auto).unwrap();
    assert_eq!((archived.status(), archived.live_version()), (Archived, None));
    assert_eq!(event, EventType::Archived);
    let (unarchived, event) = archived.apply(Trigger::Unarchive, Review::Auto).unwrap();
    assert_eq!((unarchived, event), (approved, EventType::Unarchived));
    let pending = State::initial(Review::Manual);
    assert!(pending.apply(Trigger::Archive, Review::Manual).is_err(), "it is PENDING");
}

#[test]
fn only_a_script_flags_rates_and_moves_templates_between_categories() {
    let script =
        [Trigger::Flag, Trigger::Quality, Trigger::AnnounceCategory, Trigger::ChangeCategory];
    for state in all_states() {
        for trigger in script {
            assert!(state.apply(trigger, Review::Auto).is_err(), "{state:?}");
            assert!(state.apply(trigger, Review::Manual).is_err(), "{state:?}");
            if let Ok((next, _)) = state.apply(trigger, Review::Scripted) {
                assert_eq!(next, state);
            }
        }
        let refusal = state.apply(Trigger::Resume, Review::Scripted);
        let possible = refusal.map_or_else(|it| it.possible, |_| Vec::new());
        assert!(possible.iter().all(|it| it.is_action()), "{possible:?}");
    }
}

#[test]
fn an_edit_in_place_leaves_no_version_live_until_it_is_approved() {
    let approved = State::initial(Review::Auto);
    let (paused, _) = approved.apply(Trigger::Pause, Review::Scripted).unwrap();
    for before in [approved, paused] {
        let (edited, event) = before.edited_in_place().unwrap();
        assert_eq!((edited.status(), edited.live_version()), (Pending, None));
        assert_eq!((edited.version, event), (2, EventType::Edited));
        let refusal = edited.edited_in_place().unwrap_err();
        assert_eq!(refusal.status, Pending);
        assert!(!refusal.possible.contains(&Trigger::Edit), "{refusal:?}");
        let (approved, _) = edited.apply(Trigger::Approve, Review::Scripted).unwrap();
        assert_eq!(approved.live_version(), Some(2));
    }
}

#[test]
fn a_provider_owns_status_and_holds_of_the_templates_of_a_connected_account() {
    use Trigger::{Approve, Delete, Edit, Reject};
    for state in all_states() {
        let possible = state.possible_triggers(Review::Provider);
        assert!(possible.iter().all(|it| [Edit, Delete].contains(it)), "{state:?} {possible:?}");
        let possible = state.possible_triggers(Review::InHouseThenProvider);
        let reviewed = [Edit, Approve, Reject, Delete];
        assert!(possible.iter().all(|it| reviewed.contains(it)), "{state:?} {possible:?}");
        for review in [Review::Provider, Review::InHouseThenProvider] {
            assert!(state.apply(Delete, review).is_ok(), "{state:?}");
            if let Ok((edited, event)) = state.apply(Edit, review) {
                assert_eq!((edited.newest_status, event), (Pending, EventType::Edited));
                assert_eq!(edited.approved_version, state.approved_version);
            }
        }
    }
    assert_eq!(State::initial(Review::Provider), State::initial(Review::Manual));
}

#[test]
fn a_reviewer_of_a_connected_account_passes_a_version_on_and_rejects_it_for_good() {
    let review = Review::InHouseThenProvider;
    let pending = State::initial(review);
    let (passed, event) = pending.apply(Trigger::Approve, review).unwrap();
    assert_eq!((passed, event), (pending, EventType::ReviewPassed));
    let (rejected, event) = pending.apply(Trigger::Reject, review).unwrap();
    assert_eq!((rejected.status(), event), (Rejected, EventType::Rejected));
    assert!(rejected.apply(Trigger::Approve, review).is_err());
    // The provider shows another content as approved.
    let drifted = State { newest_status: Approved, ..pending };
    let (passed, _) = drifted.apply(Trigger::Approve, review).unwrap();
    assert_eq!(passed, drifted, "only the provider makes a version live");
    let approved = State { approved_version: Some(1), ..drifted };
    assert!(approved.apply(Trigger::Approve, review).is_err());
}
