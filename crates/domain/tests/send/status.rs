//! Templates that cannot be sent because of their state.

use galley_domain::{
    send::{self, RefusalCode},
    template::{
        Review, Status,
        lifecycle::{Hold, State},
    },
};

fn refused(state: Option<State>) -> (u32, String) {
    let refusal = send::live_version("order_shipped", "en_US", state.as_ref()).unwrap_err();
    assert_eq!(refusal.violations[0].pointer, "/template/name");
    (refusal.code.number(), refusal.details)
}

#[test]
fn the_live_version_is_sent_even_if_a_newer_one_waits_for_review() {
    let live = State::initial(Review::Auto);
    assert_eq!(send::live_version("n", "en_US", Some(&live)), Ok(1));
    let edited = State { version: 2, newest_status: Status::Pending, ..live };
    assert_eq!(send::live_version("n", "en_US", Some(&edited)), Ok(1));
}

#[test]
fn a_template_that_is_unknown_or_not_approved_is_refused_with_132001() {
    let missing = "template name (order_shipped) does not exist in en_US";
    assert_eq!(refused(None), (132_001, missing.to_owned()));
    let pending = State::initial(Review::Manual);
    let details = format!("{missing}: it has no approved version, its status is PENDING");
    assert_eq!(refused(Some(pending)), (132_001, details));
    let rejected = State { newest_status: Status::Rejected, ..pending };
    assert_eq!(refused(Some(rejected)).0, 132_001);
}

#[test]
fn a_paused_template_is_refused_with_132015() {
    let paused = State { hold: Some(Hold::Paused), ..State::initial(Review::Auto) };
    let details = "template name (order_shipped) in en_US is paused, so it cannot be sent; resume it or wait until the pause ends";
    assert_eq!(refused(Some(paused)), (132_015, details.to_owned()));
}

#[test]
fn a_disabled_template_is_refused_with_132016() {
    let disabled = State { hold: Some(Hold::Disabled), ..State::initial(Review::Auto) };
    let details =
        "template name (order_shipped) in en_US is disabled, so it can never be sent again";
    assert_eq!(refused(Some(disabled)), (132_016, details.to_owned()));
}

#[test]
fn codes_are_meta_numbers_in_ascending_order() {
    let numbers: Vec<u32> = RefusalCode::ALL.iter().map(|it| it.number()).collect();
    assert!(numbers.is_sorted() && numbers.len() == 10, "{numbers:?}");
    let json = serde_json::to_value(RefusalCode::ParameterCount).unwrap();
    assert_eq!(json, 132_000);
}
