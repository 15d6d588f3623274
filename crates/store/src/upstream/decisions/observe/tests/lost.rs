//! What a look at the provider tells while it is not known what a call has done there.

use super::*;

/// A message with a one-time code as the provider shows it: without the app that receives the code.
fn shown_code(status: &str, updated_at: i64) -> RemoteTemplate {
    let button = r#"{"type":"URL","text":"Copy code","url":"https://www.whatsapp.com/otp/code/?otp_type=ONE_TAP"}"#;
    let text = format!(
        r#"{{"id":"5","name":"a","language":"en","status":"{status}","category":"AUTHENTICATION","components":[{{"type":"BODY","text":"{{{{1}}}} is your code."}},{{"type":"BUTTONS","buttons":[{button}]}}]}}"#
    );
    RemoteTemplate { updated_at: Some(time(updated_at)), ..RemoteTemplate::parse(&text).unwrap() }
}

/// A template whose newest version, with this content, waits for a decision.
fn pending(version: u64, approved_version: Option<u64>, content: &str) -> StoredTemplate {
    let category =
        if content.contains("otp_type") { Category::Authentication } else { Category::Utility };
    #[expect(clippy::disallowed_methods, reason = "a test needs no valid template")]
    let template =
        Template::restore("a".to_owned(), "en".to_owned(), category, true, content.to_owned());
    let state = State { version, newest_status: Status::Pending, approved_version, hold: None };
    StoredTemplate { template, ..stored(state) }
}

fn version(number: u64, content: &str) -> FormerVersion {
    let category = pending(number, None, content).template.category();
    FormerVersion { number, category, content: content.to_owned() }
}

fn asked(row: &MirroredTemplate) -> Source {
    Source::Read { asked: row.dirty_at, confirmed: None }
}

#[test]
fn only_the_look_after_the_second_of_a_change_tells_a_call_of_that_second() {
    let former = [version(1, &code("first"))];
    let edited = pending(2, Some(1), &code("second"));
    let shown = shown_code("APPROVED", 10);
    // The first version was read in the second of its change, and replaced in that second.
    let first = pending(1, None, &code("first"));
    let confirmed = Source::Read { asked: None, confirmed: Some(1) };
    let row = observation(&shown, &first, None, confirmed).decide(&[]).row;
    assert_eq!((row.version, row.dirty_at), (Some(1), Some(time(13))));
    let sent = MirroredTemplate { sent_version: Some(2), ..row };
    let look = |source, millisecond| {
        let at = Timestamp::from_millisecond(millisecond).unwrap();
        let seen = observation(&shown, &edited, Some(&sent), source);
        Observation { seen_at: at, at, ..seen }.decide(&former).row
    };
    for source in [READ, Source::Page(2)] {
        let early = look(source, 10_900);
        assert_eq!((early.version, early.sent_version), (Some(1), Some(2)), "{source:?}");
    }
    assert_eq!(look(asked(&sent), 13_000).version, Some(2));
}

#[test]
fn a_change_that_the_look_after_a_second_shows_has_such_a_look_of_its_own() {
    let updated = |text, second| RemoteTemplate {
        updated_at: Some(time(second)),
        ..remote("APPROVED", text)
    };
    let row = observe_at(&updated("mine", 10), None, READ, 10_500);
    assert_eq!(row.dirty_at, Some(time(13)));
    let seen = observe_at(&updated("foreign", 13), Some(&row), asked(&row), 13_200);
    assert_eq!((seen.dirty_at, seen.has_unread_change()), (Some(time(16)), false));
    // A provider that shows the time of now is not asked every three seconds.
    let same = observe_at(&updated("mine", 13), Some(&row), asked(&row), 13_200);
    assert_eq!(same.dirty_at, Some(time(13 + 15 * 60 + 1)));
}

#[test]
fn a_look_without_the_content_changes_no_version() {
    let image = |name: &str| {
        let handle = galley_domain::template::sample::handle(name);
        format!(
            r#"{{"components":[{{"type":"HEADER","format":"IMAGE","example":{{"header_handle":["{handle}"]}}}}]}}"#
        )
    };
    let [first, second] =
        ["abcdefghijklmnopqrstuvwxyz_-0123", "bbcdefghijklmnopqrstuvwxyz_-0123"].map(image);
    let shown = RemoteTemplate {
        updated_at: Some(time(-60)),
        document: Some(
            r#"{"category":"UTILITY","components":[{"type":"HEADER","format":"IMAGE","example":{"header_handle":["https://cdn.example/a.png"]}}]}"#
                .to_owned(),
        ),
        ..remote("APPROVED", "")
    };
    let (local, former) = (pending(2, Some(1), &second), [version(1, &first)]);
    let confirmed = Source::Read { asked: None, confirmed: Some(1) };
    let row = observation(&shown, &local, None, confirmed).decide(&former).row;
    let sent = MirroredTemplate { sent_version: Some(2), ..row.clone() };
    for (before, updated_at) in [(&row, -60), (&row, 5), (&sent, -60), (&sent, 5)] {
        let header =
            RemoteTemplate { updated_at: Some(time(updated_at)), document: None, ..shown.clone() };
        for source in [Source::Page(2), READ] {
            let seen = observation(&header, &local, Some(before), source).decide(&former);
            let versions = (seen.row.version, seen.row.sent_version);
            assert_eq!(versions, (Some(1), before.sent_version), "{updated_at} {source:?}");
            assert_eq!(seen.change.map(|it| it.changed.state), None, "{updated_at} {source:?}");
        }
    }
    // The row of another template tells nothing about this one before a read.
    let other = MirroredTemplate { template: TemplateId::new(8), ..row };
    let header = RemoteTemplate { document: None, ..shown };
    let seen = observation(&header, &local, Some(&other), Source::Page(2)).decide(&former);
    assert_eq!((seen.row.version, seen.to_read().is_some()), (None, true));
    assert!(seen.change.is_none() && !seen.row.drifted);
}

#[test]
fn a_former_version_in_place_of_one_that_was_sent_is_drift() {
    let local = stored(State {
        version: 2,
        newest_status: Status::Pending,
        approved_version: None,
        hold: None,
    });
    let shown = |text, updated_at| RemoteTemplate {
        updated_at: Some(time(updated_at)),
        ..remote("APPROVED", text)
    };
    let first = observe(&shown("former", -60), None, Some(&local), READ).row;
    assert_eq!((first.version, first.drifted), (Some(1), false), "the second is yet to be sent");
    let sent = MirroredTemplate { sent_version: Some(2), ..first };
    let late = observe(&shown("former", -60), Some(&sent), Some(&local), READ).row;
    assert!(!late.drifted, "it may be from before the call");
    let replaced = observe(&shown("former", 5), Some(&sent), Some(&local), READ).row;
    assert!(replaced.drifted, "after the call");
    let second = observe(&shown("mine", 0), Some(&sent), Some(&local), READ).row;
    let replaced = observe(&shown("former", 5), Some(&second), Some(&local), READ).row;
    assert!(replaced.drifted, "after the second was seen");
}

#[test]
fn a_late_read_of_what_a_call_has_replaced_is_no_drift() {
    let local = pending(2, None, &content("mine"));
    let shown = |text, updated_at| RemoteTemplate {
        updated_at: Some(time(updated_at)),
        ..remote("PENDING", text)
    };
    let foreign = observe(&shown("foreign", -60), None, Some(&local), READ).row;
    assert!(foreign.drifted);
    // The account pushes its version, and the provider takes it.
    for version in [1, 2] {
        let sent =
            MirroredTemplate { sent_version: Some(version), drifted: false, ..foreign.clone() };
        let late = observe(&shown("foreign", -60), Some(&sent), Some(&local), READ).row;
        assert!(!late.drifted, "no person can accept it");
        let again = observe(&shown("foreign", 5), Some(&sent), Some(&local), READ).row;
        assert!(again.drifted, "after the call");
    }
}

#[test]
fn a_version_is_sent_that_is_restored_after_a_late_read_has_shown_it() {
    let third = pending(3, None, &content("mine"));
    let restored = pending(4, None, &content("former"));
    let versions = [version(2, &content("former")), version(1, &content("first"))];
    let shown = |text, updated_at| RemoteTemplate {
        updated_at: Some(time(updated_at)),
        ..remote("PENDING", text)
    };
    let first = observation(&shown("first", -60), &third, None, READ).decide(&versions).row;
    // The account has sent the second version and then the third.
    let sent = MirroredTemplate { sent_version: Some(3), drifted: false, ..first };
    let late = observation(&shown("former", 5), &third, Some(&sent), READ).decide(&versions).row;
    assert!(!late.has_version(&restored), "{late:?}");
    let now = observation(&shown("mine", 6), &third, Some(&late), READ).decide(&versions).row;
    assert_eq!((now.version, now.drifted), (Some(3), false), "the last call made it");
}

#[test]
fn a_restored_version_is_sent_although_a_late_read_shows_it_from_before_a_call() {
    let restored = pending(3, None, &content("former"));
    let shown = |text, updated_at| RemoteTemplate {
        updated_at: Some(time(updated_at)),
        ..remote("PENDING", text)
    };
    let foreign = observe(&shown("foreign", -60), None, Some(&restored), READ).row;
    // The account has sent the first version and then the second: a read after that shows the first.
    let sent = MirroredTemplate { sent_version: Some(2), drifted: false, ..foreign };
    let late = observe(&shown("former", 5), Some(&sent), Some(&restored), READ).row;
    assert!(!late.has_version(&restored) && !late.drifted, "{late:?}");
    let again = observe(&shown("former", 5), Some(&late), Some(&restored), READ).row;
    assert!(!again.has_version(&restored), "{again:?}");
    let sent = shown("mine", 6);
    let former = [version(2, &content("mine")), version(1, &content("former"))];
    let now = observation(&sent, &restored, Some(&late), READ).decide(&former).row;
    assert!(!now.drifted, "the last call made it: {now:?}");
    let confirmed = Source::Read { asked: None, confirmed: Some(3) };
    let probed = observe(&shown("former", 6), Some(&late), Some(&restored), confirmed).row;
    assert!(probed.has_version(&restored), "{probed:?}");
}

/// An observation while the outcome of an edit is not known.
fn uncertain<'a>(
    remote: &'a RemoteTemplate,
    local: &'a StoredTemplate,
    before: &'a MirroredTemplate,
) -> Observation<'a> {
    let open_call = Some(OpenCall::Edit(2));
    Observation { open_call, ..observation(remote, local, Some(before), asked(before)) }
}

#[test]
fn no_version_becomes_live_by_a_status_that_may_be_that_of_a_lost_edit() {
    // The first version was rejected, and the edit of its app has no answer: it was made.
    let shown = shown_code("REJECTED", -60);
    let confirmed = Source::Read { asked: None, confirmed: Some(1) };
    let first = pending(1, None, &code("first"));
    let row = observation(&shown, &first, None, confirmed).decide(&[]).row;
    let (local, former) = (pending(2, None, &code("second")), [version(1, &code("first"))]);
    let approved = shown_code("APPROVED", 5);
    let open = uncertain(&approved, &local, &row).decide(&former);
    let late = uncertain(&shown, &local, &row).decide(&former).row;
    assert_eq!((late.version, late.drifted), (Some(1), false), "it may be from before the call");
    // The operation may end without another call: it is replaced, or the provider refuses it.
    let ended = observation(&approved, &local, Some(&late), READ).decide(&former);
    let again = observation(&approved, &local, Some(&ended.row), READ).decide(&former);
    for seen in [&open, &ended, &again] {
        assert_eq!((seen.row.version, seen.row.drifted), (None, false));
        assert_eq!(after(&local, seen).state, local.state, "neither version is live");
        assert!(!seen.row.has_version(&local) && !seen.row.has_version(&first), "it is made again");
    }
    let confirmed = Source::Read { asked: None, confirmed: Some(2) };
    let found = observation(&approved, &local, Some(&open.row), confirmed).decide(&former);
    assert_eq!((found.row.version, found.row.sent_version), (Some(2), None));
    assert_eq!(after(&local, &found).state.live_version(), Some(2));
    let made = MirroredTemplate { sent_version: Some(2), ..again.row };
    let made = observation(&shown_code("APPROVED", 8), &local, Some(&made), READ).decide(&former);
    assert_eq!(after(&local, &made).state.live_version(), Some(2));
}

#[test]
fn a_live_version_stays_live_while_nothing_has_changed_since_before_a_lost_edit() {
    let shown = RemoteTemplate { updated_at: Some(time(-60)), ..remote("APPROVED", "former") };
    let local = pending(2, Some(1), &content("mine"));
    let row = observe(&shown, None, Some(&local), READ).row;
    let seen = uncertain(&shown, &local, &row).decide(&[former()]);
    assert_eq!(after(&local, &seen).state, local.state);
    // A later look shows all of the former version.
    let changed = RemoteTemplate { updated_at: Some(time(5)), ..shown };
    let seen = observation(&changed, &local, Some(&seen.row), READ).decide(&[former()]);
    assert_eq!((seen.row.version, seen.row.sent_version), (Some(1), None));
    assert_eq!(after(&local, &seen).state, local.state);
    // The edit was made if all of it is shown.
    let made = RemoteTemplate { updated_at: Some(time(5)), ..remote("PENDING", "mine") };
    let made = uncertain(&made, &local, &row).decide(&[former()]).row;
    assert!((made.version, made.sent_version) == (Some(2), None) && made.has_version(&local));
    // What is of neither side is of another author.
    let foreign = remote("APPROVED", "foreign");
    assert!(uncertain(&foreign, &local, &row).decide(&[former()]).row.drifted);
}

#[test]
fn a_restored_version_is_sent_if_a_call_before_it_was_lost_or_is_being_made() {
    for updated_at in [Some(time(-60)), None] {
        let shown = RemoteTemplate { updated_at, ..remote("APPROVED", "mine") };
        let first = pending(1, Some(1), &content("mine"));
        let row = observe(&shown, None, Some(&first), READ).row;
        let third = pending(3, Some(1), &content("mine"));
        let former = [version(2, &content("second")), version(1, &content("mine"))];
        // The look after the call of the second version shows the first one, and that call ends.
        let seen = uncertain(&shown, &third, &row).decide(&former);
        assert_eq!(after(&third, &seen).state, third.state, "it was not sent");
        assert_eq!(seen.row.version, Some(1));
        assert!(!seen.row.has_version(&third) && !seen.row.drifted);
        // It was made, and the provider has rejected it.
        let second = RemoteTemplate { updated_at: Some(time(5)), ..remote("REJECTED", "second") };
        let seen = observation(&second, &third, Some(&seen.row), READ).decide(&former);
        let state = State { approved_version: None, ..third.state };
        assert_eq!((seen.row.version, after(&third, &seen).state), (Some(2), state));
        assert!(!seen.row.has_version(&third), "it replaces the second one");
    }
}

#[test]
fn a_template_that_is_to_be_deleted_is_not_that_of_its_successor() {
    let (approved, successor) = (remote("APPROVED", "mine"), stored(states()[0]));
    let deleted = TemplateId::new(3).unwrap();
    let row = observe(&approved, None, Some(&successor), READ).row;
    let row = MirroredTemplate { template: Some(deleted), ..row };
    for before in [Some(&row), None] {
        for source in [READ, Source::Page(2)] {
            let seen = Observation {
                open_call: Some(OpenCall::Delete(deleted)),
                ..observation(&approved, &successor, before, source)
            };
            let seen = seen.decide(&[]);
            assert_eq!(seen.row.template, Some(deleted), "the delete finds it");
            assert!(seen.change.is_none() && seen.import.is_none());
        }
    }
}

#[test]
fn the_end_of_a_call_for_a_former_version_tells_nothing_about_the_newest_one() {
    use galley_domain::upstream::{Operation, OperationKind, OperationState};
    let local = pending(3, Some(1), &content("mine"));
    for (state, kind) in [
        (OperationState::Done, EventType::Submitted),
        (OperationState::Refused, EventType::UpstreamRefused),
    ] {
        let told = |version| {
            let operation = Operation { state, ..Operation::new(OperationKind::Edit) };
            let ended = crate::StoredOperation { operation, ..properties::queued(version, None) };
            let change = ended.told(account(), &local, time(9))?;
            change.events.first().map(|event| (event.kind, event.version))
        };
        assert_eq!((told(2), told(3)), (None, Some((kind, 3))));
    }
}
