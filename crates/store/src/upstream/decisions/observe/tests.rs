//! Every status of the provider after every state of a template.

use galley_domain::{
    document::Document,
    template::lifecycle::{EventType, Hold},
    upstream::RemoteStatus,
};

use super::*;

mod lost;
mod properties;
mod unsent;

const STATUSES: [&str; 11] = [
    "APPROVED",
    "PENDING",
    "REJECTED",
    "PAUSED",
    "DISABLED",
    "ARCHIVED",
    "IN_APPEAL",
    "PENDING_DELETION",
    "DELETED",
    "LIMIT_EXCEEDED",
    "NOVEL",
];

pub(super) fn account() -> AccountId {
    AccountId::new(1).unwrap()
}

pub(super) fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn content(text: &str) -> String {
    format!(r#"{{"components":[{{"type":"BODY","text":"{text}"}}]}}"#)
}

pub(super) fn remote(status: &str, text: &str) -> RemoteTemplate {
    let document = format!(
        r#"{{"id":"5","name":"a","language":"en","status":"{status}","category":"UTILITY",{}"#,
        &content(text)[1..]
    );
    assert!(Document::parse(document.as_bytes()).is_ok());
    RemoteTemplate::parse(&document).unwrap()
}

pub(super) fn stored(state: State) -> StoredTemplate {
    #[expect(clippy::disallowed_methods, reason = "a test needs no valid template")]
    let template = Template::restore(
        "a".to_owned(),
        "en".to_owned(),
        Category::Utility,
        true,
        content("mine"),
    );
    StoredTemplate {
        id: TemplateId::new(9).unwrap(),
        phone: None,
        template,
        state,
        previous_category: None,
        announced_category: None,
        quality: Quality::Unknown,
        reason: None,
        decided_by: None,
        revision: 4,
        created_at: time(0),
        updated_at: time(0),
    }
}

fn states() -> Vec<State> {
    let mut states = Vec::new();
    for newest_status in [Status::Pending, Status::Approved, Status::Rejected] {
        for approved_version in [None, Some(1), Some(2)] {
            for hold in [None, Some(Hold::Paused), Some(Hold::Disabled), Some(Hold::Archived)] {
                states.push(State { version: 2, newest_status, approved_version, hold });
            }
        }
    }
    states
}

const READ: Source = Source::Read { asked: None, confirmed: None };

fn former() -> FormerVersion {
    FormerVersion { number: 1, category: Category::Utility, content: content("former") }
}

fn observe(
    remote: &RemoteTemplate,
    before: Option<&MirroredTemplate>,
    local: Option<&StoredTemplate>,
    source: Source,
) -> Observed {
    let observation = Observation {
        account: account(),
        remote,
        source,
        before,
        local,
        is_superseded: false,
        open_call: None,
        seen_at: time(10),
        at: time(10),
    };
    observation.decide(&[former()])
}

/// The template after an observation.
fn after(local: &StoredTemplate, observed: &Observed) -> StoredTemplate {
    let Some(change) = &observed.change else { return local.clone() };
    let ChangedTemplate { state, revision, .. } = change.changed;
    StoredTemplate { state, revision, ..local.clone() }
}

#[test]
fn the_status_is_that_of_the_provider_and_every_change_has_an_event() {
    for state in states() {
        let local = stored(state);
        for status in STATUSES {
            for text in ["mine", "former", "foreign"] {
                let remote = remote(status, text);
                let observed = observe(&remote, None, Some(&local), READ);
                let next = after(&local, &observed);
                let case = format!("{state:?} {status} {text}: {next:?}");
                let shown = remote.status.state();
                assert_eq!(next.state.hold, shown.hold, "{case}");
                let events = observed.change.as_ref().map_or(0, |it| it.events.len() as u64);
                assert_eq!(next.revision, local.revision + events, "{case}");
                assert_eq!(
                    events == 0,
                    next.state == local.state && !observed.row.drifted,
                    "{case}"
                );
                let live = next.state.live_version();
                let matched = [("mine", 2), ("former", 1)].iter().find(|it| it.0 == text);
                let matched = matched.map(|it| it.1).filter(|_| status == "APPROVED");
                assert_eq!(live, matched, "{case}");
                if text == "mine"
                    && let Some(shown) = shown.version_status
                {
                    assert_eq!(next.state.newest_status, shown, "{case}");
                }
                // The newest version was never at the provider.
                if text != "mine" {
                    assert_ne!(next.state.newest_status, Status::Approved, "{case}");
                }
                // The same observation again changes nothing.
                let row = &observed.row;
                let again = observe(&remote, Some(row), Some(&next), READ);
                assert_eq!(again.change, None, "{case}");
                assert_eq!((&again.row, again.is_changed), (row, false), "{case}");
            }
        }
    }
}

#[test]
fn a_version_that_the_provider_has_decided_on_keeps_the_status_there_after_drift() {
    let state = State {
        version: 2,
        newest_status: Status::Approved,
        approved_version: Some(2),
        hold: None,
    };
    let local = stored(state);
    let equal = observe(&remote("APPROVED", "mine"), None, Some(&local), READ).row;
    let pending = remote("PENDING", "foreign");
    let edited = observe(&pending, Some(&equal), Some(&local), READ);
    let decision = edited.change.as_ref().and_then(|it| it.changed.decision.clone());
    assert_eq!(decision, Some(NewDecision::Made(None)), "the provider had approved it");
    let local = StoredTemplate { decided_by: Some(Actor::Service), ..after(&local, &edited) };
    assert_eq!(local.state.newest_status, Status::Pending);
    let rejected = remote("REJECTED", "foreign");
    let rejected = observe(&rejected, Some(&edited.row), Some(&local), READ);
    let local = after(&local, &rejected);
    assert_eq!(local.state.newest_status, Status::Pending, "another content was rejected");
    let approved = remote("APPROVED", "foreign");
    let approved = observe(&approved, Some(&rejected.row), Some(&local), READ);
    let local = after(&local, &approved);
    assert_eq!(local.state.newest_status, Status::Approved);
    assert_eq!(local.state.live_version(), None);
}

#[test]
fn a_version_that_the_provider_has_rejected_is_not_approved_with_another_content() {
    let state =
        State { version: 2, newest_status: Status::Pending, approved_version: None, hold: None };
    let local = stored(state);
    let rejected = observe(&remote("REJECTED", "mine"), None, Some(&local), READ);
    let local = StoredTemplate { decided_by: Some(Actor::Service), ..after(&local, &rejected) };
    assert_eq!(local.state.newest_status, Status::Rejected);
    for status in ["PENDING", "APPROVED"] {
        let foreign = remote(status, "foreign");
        let seen = observe(&foreign, Some(&rejected.row), Some(&local), READ);
        assert!(seen.row.drifted);
        assert_eq!(after(&local, &seen).state, local.state, "{status}");
    }
}

#[test]
fn drift_is_told_once_and_ends_with_an_equal_content() {
    let local = stored(states()[12]);
    let first = observe(&remote("APPROVED", "foreign"), None, Some(&local), READ);
    assert!(first.row.drifted && first.row.version.is_none());
    let told = |observed: &Observed| {
        let change = observed.change.as_ref();
        change.is_some_and(|it| it.events.iter().any(|it| it.kind == EventType::Drifted))
    };
    assert!(told(&first));
    let local = after(&local, &first);
    let other = remote("APPROVED", "foreign too");
    let second = observe(&other, Some(&first.row), Some(&local), READ);
    assert!(second.row.drifted && !told(&second));
    let equal = remote("APPROVED", "mine");
    let third = observe(&equal, Some(&second.row), Some(&local), READ);
    assert!(!third.row.drifted && third.is_changed);
    assert_eq!(after(&local, &third).state.live_version(), Some(2));
}

#[test]
fn a_header_changes_the_template_only_if_the_content_is_known() {
    let local = stored(states()[12]);
    let full = remote("APPROVED", "mine");
    let header = |status: &str| RemoteTemplate { document: None, ..remote(status, "mine") };
    let unknown = observe(&header("REJECTED"), None, Some(&local), Source::Page(1));
    assert!(unknown.change.is_none() && unknown.to_read().is_some());
    let known = observe(&full, None, Some(&local), Source::Page(1)).row;
    assert_eq!((known.dirty_at, known.sweep), (None, 1));
    let same = observe(&header("APPROVED"), Some(&known), Some(&local), Source::Page(2));
    assert_eq!((same.to_read(), same.is_changed, same.row.sweep), (None, false, 2));
    assert_eq!(same.row.content_key, known.content_key);
    let rejected = observe(&header("REJECTED"), Some(&known), Some(&local), Source::Page(2));
    assert!(rejected.change.is_none() && rejected.to_read().is_some() && rejected.is_changed);
    assert_eq!(rejected.row.status, RemoteStatus::Rejected);
    // The row already shows the new status, and the read is still due.
    let again = observe(&header("REJECTED"), Some(&rejected.row), Some(&local), Source::Page(3));
    assert_eq!((again.to_read().is_some(), again.change), (true, None));
}

#[test]
fn former_versions_are_searched_once_for_a_content() {
    let local = stored(states()[12]);
    let remote = remote("APPROVED", "former");
    let observation = |before| Observation {
        account: account(),
        remote: &remote,
        source: READ,
        before,
        local: Some(&local),
        is_superseded: false,
        open_call: None,
        seen_at: time(10),
        at: time(10),
    };
    assert!(observation(None).wants_former_versions());
    let row = observation(None).decide(&[former()]).row;
    assert_eq!(row.version, Some(1));
    assert!(!observation(Some(&row)).wants_former_versions());
    let other = MirroredTemplate { template: None, ..row.clone() };
    assert!(observation(Some(&other)).wants_former_versions());
}

#[test]
fn a_template_is_imported_unless_it_is_deleted_on_either_side() {
    for status in STATUSES {
        let remote = remote(status, "new");
        let observed = observe(&remote, None, None, Source::Page(1));
        let is_deleted = remote.status.is_deleted();
        assert_eq!(observed.import.is_none(), is_deleted, "{status}");
        let Some(import) = observed.import else { continue };
        assert_eq!(import.state.live_version(), (status == "APPROVED").then_some(1), "{status}");
        assert_eq!(import.state.hold, remote.status.state().hold, "{status}");
    }
    let remote = remote("APPROVED", "new");
    let deleting = Observation {
        account: account(),
        remote: &remote,
        source: Source::Page(1),
        before: None,
        local: None,
        is_superseded: false,
        open_call: TemplateId::new(9).map(OpenCall::Delete),
        seen_at: time(10),
        at: time(10),
    };
    let observed = deleting.decide(&[]);
    assert!(observed.import.is_none());
    assert_eq!(observed.row.template, TemplateId::new(9), "the delete finds it");
}

#[test]
fn only_counted_sweeps_and_a_read_together_make_a_template_gone() {
    let row = observe(&remote("APPROVED", "a"), None, None, Source::Page(1)).row;
    for (missing, is_suspicious, expected) in
        [(0, false, None), (1, false, None), (2, true, None), (2, false, Some(time(9)))]
    {
        let before = MirroredTemplate { missing, dirty_at: Some(time(3)), ..row.clone() };
        let after = absent(&before, Some(time(3)), is_suspicious, time(9));
        assert_eq!(after.gone_at, expected, "{missing}");
        assert_eq!(after.dirty_at, None);
        assert_eq!(absent(&before, None, is_suspicious, time(9)).dirty_at, Some(time(3)));
    }
}

/// A message with a one-time code for an app, which the provider does not show.
fn code(app: &str) -> String {
    format!(
        r#"{{"components":[{{"type":"BODY"}},{{"type":"BUTTONS","buttons":[{{"type":"OTP","otp_type":"ONE_TAP","text":"Copy code","supported_apps":[{{"package_name":"{app}","signature_hash":"K8a/AINcGX7"}}]}}]}}]}}"#
    )
}

pub(super) fn observation<'a>(
    remote: &'a RemoteTemplate,
    local: &'a StoredTemplate,
    before: Option<&'a MirroredTemplate>,
    source: Source,
) -> Observation<'a> {
    Observation {
        account: account(),
        remote,
        source,
        before,
        local: Some(local),
        is_superseded: false,
        open_call: None,
        seen_at: time(10),
        at: time(10),
    }
}

#[test]
fn only_the_call_that_sent_a_version_tells_that_the_provider_has_what_it_does_not_show() {
    let remote = RemoteTemplate::parse(
        r#"{"id":"5","name":"a","language":"en","status":"APPROVED","category":"AUTHENTICATION","components":[{"type":"BODY","text":"{{1}} is your code."},{"type":"BUTTONS","buttons":[{"type":"URL","text":"Copy code","url":"https://www.whatsapp.com/otp/code/?otp_type=ONE_TAP"}]}]}"#,
    )
    .unwrap();
    let state =
        State { version: 3, newest_status: Status::Pending, approved_version: None, hold: None };
    let mut local = stored(state);
    #[expect(clippy::disallowed_methods, reason = "a test needs no valid template")]
    let newest = Template::restore(
        "a".to_owned(),
        "en".to_owned(),
        Category::Authentication,
        true,
        code("third"),
    );
    local.template = newest;
    let version = |number, app| FormerVersion {
        number,
        category: Category::Authentication,
        content: code(app),
    };
    let former = [version(2, "second"), version(1, "first")];
    let matched = |before: Option<&MirroredTemplate>, source| {
        let observed = observation(&remote, &local, before, source).decide(&former);
        let change = observed.change.map(|it| it.changed.state);
        assert!(change.is_none_or(|it| it.live_version() == observed.row.version));
        observed.row
    };
    let unknown = matched(None, READ);
    assert_eq!((unknown.version, unknown.drifted), (None, true), "it may be any of them");
    let sent = |sent_version| MirroredTemplate { sent_version, ..unknown.clone() };
    for number in [1, 2, 3] {
        let row = matched(Some(&sent(Some(number))), READ);
        assert_eq!((row.version, row.sent_version), (Some(number), None));
        let confirmed = Source::Read { asked: None, confirmed: Some(number) };
        assert_eq!(matched(None, confirmed).version, Some(number));
        // The same content is still that version, although others look alike.
        assert_eq!(matched(Some(&row), READ).version, Some(number));
        assert_eq!(matched(Some(&row), Source::Page(2)).version, Some(number));
    }
    // What was sent was changed at the provider before it was seen, and imitated after that.
    let replaced = MirroredTemplate { content_key: Some([7; 32]), ..sent(Some(3)) };
    let changed =
        RemoteTemplate { document: self::remote("APPROVED", "x").document, ..remote.clone() };
    let changed = observation(&changed, &local, Some(&replaced), READ).decide(&former).row;
    assert_eq!((changed.version, changed.sent_version, changed.drifted), (None, None, true));
    assert_eq!(matched(Some(&changed), READ).version, None);
}

/// A template that the provider changed in this second.
fn updated(text: &str, second: i64) -> RemoteTemplate {
    RemoteTemplate { updated_at: Some(time(second)), ..remote("APPROVED", text) }
}

fn observe_at(
    remote: &RemoteTemplate,
    before: Option<&MirroredTemplate>,
    source: Source,
    millisecond: i64,
) -> MirroredTemplate {
    let at = Timestamp::from_millisecond(millisecond).unwrap();
    let local = stored(states()[12]);
    let observation = Observation {
        account: account(),
        remote,
        source,
        before,
        local: Some(&local),
        is_superseded: false,
        open_call: None,
        seen_at: at,
        at,
    };
    observation.decide(&[]).row
}

#[test]
fn a_page_in_the_second_of_a_change_asks_for_one_more_look() {
    let remote = updated("mine", 10);
    assert_eq!(observe_at(&remote, None, Source::Page(1), 13_000).dirty_at, None);
    let row = observe_at(&remote, None, Source::Page(1), 10_900);
    assert_eq!(row.dirty_at, Some(time(13)));
    assert!(!row.may_have_changed(time(12)) && row.may_have_changed(time(13)));
    let header = RemoteTemplate { document: None, ..remote.clone() };
    let again = observe_at(&header, Some(&row), Source::Page(2), 10_950);
    assert_eq!(again.dirty_at, Some(time(13)), "a second page asks for none of its own");
    let settled = observe_at(
        &remote,
        Some(&again),
        Source::Read { asked: Some(time(13)), confirmed: None },
        13_001,
    );
    assert_eq!(settled.dirty_at, None);
    for (source, remote) in [(Source::Page(3), &header), (Source::Page(3), &remote)] {
        assert_eq!(observe_at(remote, Some(&settled), source, 14_000).dirty_at, None);
    }
}

#[test]
fn a_provider_that_shows_the_time_of_now_is_not_asked_every_second() {
    let mut row = observe_at(&updated("mine", 10), None, Source::Page(1), 10_500);
    let mut looks = 0;
    while let Some(dirty_at) = row.dirty_at.filter(|it| *it < time(3_610)) {
        looks += 1;
        let now = dirty_at.as_millisecond() + 1;
        let remote = updated("mine", dirty_at.as_second());
        row = observe_at(
            &remote,
            Some(&row),
            Source::Read { asked: Some(dirty_at), confirmed: None },
            now,
        );
    }
    assert!(looks <= 8, "{looks} looks in an hour");
}

#[test]
fn an_approval_ends_if_its_version_is_not_live_any_more() {
    for state in states() {
        let local = stored(state);
        for status in STATUSES {
            for text in ["mine", "former", "foreign"] {
                let remote = remote(status, text);
                let mut observed = observe(&remote, None, Some(&local), Source::Page(1));
                let (before, after) = (state, after(&local, &observed).state);
                let ended = observed.ended();
                let case = format!("{before:?} {status} {text}: {after:?} {ended:?}");
                let is_lost = |before: Option<u64>, after: Option<u64>| {
                    before.is_some_and(|before| after.is_none_or(|after| after < before))
                };
                let expected = is_lost(before.live_version(), after.live_version())
                    || is_lost(before.approved_version, after.approved_version);
                assert_eq!(ended.is_some(), expected, "{case}");
                let version = ended.map(|it| it.version);
                assert!(version.is_none() || version == before.approved_version, "{case}");
            }
        }
    }
}
