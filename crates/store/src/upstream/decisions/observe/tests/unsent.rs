//! Versions that the provider does not have although it shows nothing else, and templates that it
//! generated.

use galley_domain::{
    template::sample,
    upstream::{RemoteStatus, TemplateSource},
};

use super::*;

#[test]
fn an_edit_of_nothing_but_the_category_is_not_at_the_provider_before_it_is_sent() {
    let state = |version, newest_status| State {
        version,
        newest_status,
        approved_version: None,
        hold: None,
    };
    let shown = RemoteTemplate { category: "MARKETING".to_owned(), ..remote("REJECTED", "mine") };
    let imported = observe(&shown, None, Some(&stored(state(1, Status::Rejected))), READ).row;
    assert_eq!((imported.version, imported.sent_version), (Some(1), None));
    let edited = stored(state(2, Status::Pending));
    for source in [READ, Source::Page(7)] {
        let observed = observe(&shown, Some(&imported), Some(&edited), source);
        assert_eq!(observed.row.version, Some(1), "{source:?}");
        assert_eq!(observed.change.map(|it| it.changed.state), None, "{source:?}");
    }
    let confirmed = Source::Read { asked: None, confirmed: Some(2) };
    assert_eq!(observe(&shown, Some(&imported), Some(&edited), confirmed).row.version, Some(2));
}

#[test]
fn a_generated_template_that_was_imported_has_the_status_of_the_provider() {
    let state = State {
        version: 1,
        newest_status: Status::Approved,
        approved_version: Some(1),
        hold: None,
    };
    let local = stored(state);
    let generated = |status, text| RemoteTemplate {
        source: Some(TemplateSource::parse("AUTO_GENERATED")),
        ..remote(status, text)
    };
    let row = observe(&remote("APPROVED", "mine"), None, Some(&local), READ).row;
    let state_after = |remote: &RemoteTemplate| {
        let observed = observe(remote, Some(&row), Some(&local), Source::Page(7));
        assert!(!observed.row.drifted);
        after(&local, &observed).state
    };
    assert_eq!(state_after(&generated("APPROVED", "mine")), state);
    let approved = |remote| state_after(&remote).approved_version;
    assert_eq!(approved(generated("REJECTED", "mine")), None);
    assert_eq!(approved(generated("APPROVED", "foreign")), None, "another content");
    assert_eq!(state_after(&generated("DISABLED", "mine")).hold, Some(Hold::Disabled));
}

/// A message with a one-time code that has this button.
fn code_with(button: &str) -> String {
    format!(
        r#"{{"category":"AUTHENTICATION","components":[{{"type":"BODY"}},{{"type":"BUTTONS","buttons":[{{{button}}}]}}]}}"#
    )
}

#[test]
fn a_read_from_before_the_call_tells_nothing_about_the_version_that_was_sent() {
    let shown = |label: &str, updated_at| RemoteTemplate {
        category: "AUTHENTICATION".to_owned(),
        updated_at: Some(time(updated_at)),
        document: Some(code_with(&format!(
            r#""type":"URL","text":"{label}","url":"https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE""#
        ))),
        ..remote("APPROVED", "")
    };
    let own = |label: &str| {
        let content =
            code_with(&format!(r#""type":"OTP","otp_type":"COPY_CODE","text":"{label}""#));
        content.replace(r#""category":"AUTHENTICATION","#, "")
    };
    let state = |version| State {
        version,
        newest_status: Status::Pending,
        approved_version: Some(1),
        hold: None,
    };
    #[expect(clippy::disallowed_methods, reason = "a test needs no valid template")]
    let local = |version, label: &str| {
        let (name, language) = ("a".to_owned(), "en".to_owned());
        let template =
            Template::restore(name, language, Category::Authentication, true, own(label));
        StoredTemplate { template, ..stored(state(version)) }
    };
    let former = |number, label: &str| FormerVersion {
        number,
        category: Category::Authentication,
        content: own(label),
    };
    let (first, edited) = (local(1, "Kopieren"), local(2, "Copy code"));
    let row = observation(&shown("Kopieren", -60), &first, None, READ).decide(&[]).row;
    assert_eq!(row.version, Some(1));
    let sent = MirroredTemplate { sent_version: Some(2), dirty_at: Some(time(9)), ..row };
    let again = Source::Read { asked: Some(time(9)), confirmed: None };
    // The version is still the newest one, or another one is by now.
    for (local, former) in [
        (&edited, vec![former(1, "Kopieren")]),
        (&local(3, "Kopiere"), vec![former(2, "Copy code"), former(1, "Kopieren")]),
    ] {
        let lagging = shown("Kopieren", -60);
        let seen = observation(&lagging, local, Some(&sent), again).decide(&former);
        assert_eq!((seen.row.version, seen.row.sent_version), (Some(1), Some(2)));
        assert_eq!(after(local, &seen).state.live_version(), Some(1));
        let current = shown("Code kopieren", 9);
        let header = RemoteTemplate { document: None, ..current.clone() };
        let page = observation(&header, local, Some(&seen.row), Source::Page(2)).decide(&former);
        assert!(page.to_read().is_some(), "the header tells that it is there");
        let asked = Source::Read { asked: page.row.dirty_at, confirmed: None };
        let still = observation(&lagging, local, Some(&page.row), asked).decide(&former).row;
        assert_eq!((still.version, still.sent_version), (Some(1), Some(2)));
    }
    // Only the app was replaced: the header tells that the call was made.
    let made = shown("Kopieren", 9);
    let seen = observation(&made, &edited, Some(&sent), again).decide(&[former(1, "Kopieren")]);
    assert_eq!(seen.row.version, Some(2));
    // Another author has restored what it was before the call, so that the version is there no more.
    let restored = shown("Kopieren", 30);
    let other = local(2, "Send");
    let seen = observation(&restored, &other, Some(&sent), again).decide(&[former(1, "Kopieren")]);
    assert_eq!((seen.row.version, seen.row.sent_version), (Some(1), None));
    // Both changes in one second: the look after it tells.
    let both = |row: &MirroredTemplate, millisecond| {
        let at = Timestamp::from_millisecond(millisecond).unwrap();
        let remote = shown("Kopieren", 10);
        let asked = Source::Read { asked: row.dirty_at, confirmed: None };
        let seen = observation(&remote, &edited, Some(row), asked);
        Observation { seen_at: at, at, ..seen }.decide(&[former(1, "Kopieren")]).row
    };
    let sent = MirroredTemplate { remote_updated_at: Some(time(10)), ..sent };
    let in_second = both(&sent, 10_900);
    assert_eq!((in_second.version, in_second.dirty_at), (Some(1), Some(time(13))));
    assert_eq!(both(&in_second, 13_001).version, Some(2));
}

#[test]
fn a_read_without_the_content_tells_no_status_of_a_version() {
    let local = stored(State {
        version: 2,
        newest_status: Status::Pending,
        approved_version: None,
        hold: None,
    });
    let row = observe(&remote("PENDING", "mine"), None, Some(&local), READ).row;
    assert_eq!(row.version, Some(2));
    let approved = RemoteTemplate { document: None, ..remote("APPROVED", "foreign") };
    let dirty = MirroredTemplate { dirty_at: Some(time(9)), ..row };
    for asked in [None, Some(time(9))] {
        let seen =
            observe(&approved, Some(&dirty), Some(&local), Source::Read { asked, confirmed: None });
        assert_eq!(seen.change, None);
        assert_eq!(seen.row.status, RemoteStatus::Approved);
        let expected = if asked.is_some() { 10 + 15 * 60 } else { 9 };
        assert_eq!(seen.row.dirty_at, Some(time(expected)), "it is read again");
    }
    // What was deleted has no content to show.
    let deleted = RemoteTemplate { document: None, ..remote("DELETED", "") };
    let seen = observe(&deleted, Some(&dirty), Some(&local), READ);
    assert_eq!(after(&local, &seen).state.hold, Some(Hold::Disabled));
}

#[test]
fn the_decision_of_a_former_provider_is_none_of_this_one() {
    let approved = State {
        version: 1,
        newest_status: Status::Approved,
        approved_version: Some(1),
        hold: None,
    };
    let undecided = State { newest_status: Status::Pending, approved_version: None, ..approved };
    for before in [approved, undecided] {
        let mut local = StoredTemplate { decided_by: Some(Actor::Service), ..stored(before) };
        let foreign = remote("APPROVED", "foreign");
        let mut row = None;
        for _ in 0..2 {
            let seen = observe(&foreign, row.as_ref(), Some(&local), READ);
            let decision = seen.change.as_ref().and_then(|it| it.changed.decision.clone());
            local = after(&local, &seen);
            if decision == Some(NewDecision::Withdrawn) {
                local.decided_by = None;
            }
            assert_eq!(local.state, undecided, "{before:?}");
            row = Some(seen.row);
        }
    }
}

#[test]
fn a_status_that_tells_no_decision_imports_an_undecided_version() {
    for status in ["ARCHIVED", "DISABLED", "NOVEL"] {
        let import = observe(&remote(status, "new"), None, None, Source::Page(1)).import.unwrap();
        assert_eq!(import.state.newest_status, Status::Pending, "{status}");
    }
}

#[test]
fn a_template_that_is_once_shown_as_generated_is_still_read() {
    let local = stored(State {
        version: 2,
        newest_status: Status::Pending,
        approved_version: None,
        hold: None,
    });
    let row = observe(&remote("PENDING", "mine"), None, Some(&local), READ).row;
    let header = RemoteTemplate {
        source: Some(TemplateSource::parse("AUTO_GENERATED")),
        document: None,
        ..remote("APPROVED", "foreign")
    };
    let seen = observe(&header, Some(&row), Some(&local), Source::Page(7));
    assert_eq!((seen.to_read().is_some(), seen.change), (true, None));
}

#[test]
fn a_newer_change_replaces_the_look_after_the_second_of_a_former_one() {
    let local = stored(State {
        version: 2,
        newest_status: Status::Approved,
        approved_version: Some(2),
        hold: None,
    });
    let shown = |text, updated_at| RemoteTemplate {
        updated_at: Some(time(updated_at)),
        ..remote("APPROVED", text)
    };
    let row = observe(&shown("mine", 9), None, Some(&local), Source::Page(1)).row;
    assert_eq!((row.dirty_at, row.has_unread_change()), (Some(time(12)), false));
    for source in [READ, Source::Page(2)] {
        // By a provider whose clock is an hour ahead, and in the second of now.
        for (updated_at, expected) in [(3_600, None), (10, Some(time(13)))] {
            let edited = shown("foreign", updated_at);
            let seen = observe(&edited, Some(&row), Some(&local), source).row;
            assert_eq!((seen.drifted, seen.dirty_at), (true, expected), "{source:?}");
            assert!(!seen.has_unread_change(), "{source:?}: it can be accepted");
        }
        let former = shown("foreign", 8);
        let seen = observe(&former, Some(&row), Some(&local), source).row;
        assert_eq!(seen.dirty_at, row.dirty_at, "{source:?}: an older content settles nothing");
    }
    let hinted = MirroredTemplate { dirty_at: Some(time(11)), ..row };
    let edited = shown("foreign", 3_600);
    let seen = observe(&edited, Some(&hinted), Some(&local), Source::Page(2)).row;
    assert_eq!(seen.dirty_at, hinted.dirty_at, "a webhook has asked for another read");
}

#[test]
fn a_version_that_restores_what_a_late_read_still_shows_is_not_at_the_provider() {
    let state = State {
        version: 1,
        newest_status: Status::Approved,
        approved_version: Some(1),
        hold: None,
    };
    let shown = RemoteTemplate { updated_at: Some(time(-60)), ..remote("APPROVED", "mine") };
    let first = stored(state);
    let row = observe(&shown, None, Some(&first), READ).row;
    assert!(row.version == Some(1) && row.has_version(&first));
    // The second version was sent, and the read after that shows the first one.
    let sent = MirroredTemplate { sent_version: Some(2), ..row };
    let third = stored(State { version: 3, newest_status: Status::Pending, ..state });
    let former = [
        FormerVersion { number: 2, category: Category::Utility, content: content("second") },
        FormerVersion { number: 1, category: Category::Utility, content: content("mine") },
    ];
    assert!(!sent.has_version(&third), "the second version is to be replaced");
    let late = observation(&shown, &third, Some(&sent), READ).decide(&former);
    assert_eq!((late.row.version, late.row.sent_version), (Some(1), Some(2)));
    assert_eq!(after(&third, &late).state, third.state);
    assert!(!late.row.has_version(&third));
    // Once the third version was sent, what is shown is that one.
    let sent = MirroredTemplate { sent_version: Some(3), ..late.row };
    assert!(sent.has_version(&third));
    let seen = observation(&shown, &third, Some(&sent), READ).decide(&former);
    assert_eq!(after(&third, &seen).state.live_version(), Some(3));
}

#[test]
fn a_version_with_another_sample_is_not_at_the_provider_because_the_rest_is_shown_again() {
    let image = |name: &str| {
        let handle = sample::handle(name);
        format!(
            r#"{{"components":[{{"type":"HEADER","format":"IMAGE","example":{{"header_handle":["{handle}"]}}}},{{"type":"BODY","text":"mine"}}]}}"#
        )
    };
    let files = ["abcdefghijklmnopqrstuvwxyz_-0123", "bbcdefghijklmnopqrstuvwxyz_-0123"];
    let undecided = |version: usize| {
        let newest_status = Status::Pending;
        #[expect(clippy::disallowed_methods, reason = "a test needs no valid template")]
        let template = Template::restore(
            "a".to_owned(),
            "en".to_owned(),
            Category::Utility,
            true,
            image(files[version - 1]),
        );
        let version = version as u64;
        let state = State { version, newest_status, approved_version: Some(1), hold: None };
        StoredTemplate { template, ..stored(state) }
    };
    let former =
        [FormerVersion { number: 1, category: Category::Utility, content: image(files[0]) }];
    let link = r#"{"type":"HEADER","format":"IMAGE","example":{"header_handle":["https://cdn.example/a.png"]}},"#;
    let shown = |text: &str| {
        let document = remote("APPROVED", text).document.unwrap();
        let document = document.replacen('[', &format!("[{link}"), 1);
        RemoteTemplate { document: Some(document), ..remote("APPROVED", text) }
    };
    let (first, edited) = (undecided(1), undecided(2));
    let row = observation(&shown("mine"), &first, None, READ).decide(&[]).row;
    assert_eq!(row.version, Some(1));
    let other = observation(&shown("other"), &edited, Some(&row), READ).decide(&former).row;
    assert_eq!(other.version, None);
    let unread = MirroredTemplate { content_key: None, ..row };
    for before in [other, unread] {
        let seen = observation(&shown("mine"), &edited, Some(&before), READ).decide(&former);
        assert_eq!(seen.row.version, Some(1), "the second version was not sent");
        assert_eq!(after(&edited, &seen).state.newest_status, Status::Pending);
        assert_eq!(after(&edited, &seen).state.live_version(), Some(1));
        // The provider has decided on the second version: it has had it.
        let decided = StoredTemplate { decided_by: Some(Actor::Service), ..edited.clone() };
        let seen = observation(&shown("mine"), &decided, Some(&before), READ).decide(&former);
        assert_eq!(seen.row.version, Some(2));
    }
}
