//! What a read at the provider tells about a call whose outcome is not known.

use jiff::{SignedDuration, Timestamp};

use super::OperationKind;
use crate::upstream::{
    content::{ContentKey, ContentMatch, VersionContent, document_key},
    failure::CallFailure,
    observation::RemoteTemplate,
};

/// What a read at the provider showed after a call with an unknown outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeResult {
    /// The template does not exist. After [`CallFailure::Gone`], only if the account is readable.
    Absent,
    /// It has what the operation wants: the content, or the place in or outside of the archive.
    Equal,
    /// It does not have that.
    Different,
    /// The read failed.
    Failed(CallFailure),
}

/// A call that gave the provider a version, and whose outcome is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostCall {
    /// What the provider showed before.
    pub replaced: Replaced,
    /// Whether it may have made what the provider shows.
    pub may_be_made: bool,
    /// When it began.
    pub sent_at: Option<Timestamp>,
}

/// What the provider showed before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// No template: the call was to make it.
    Nothing,
    /// A template whose content has this fingerprint, as far as it was known.
    Content(Option<ContentKey>),
}

/// How far the clock of a provider may be behind the own one.
const CLOCK_MARGIN: SignedDuration = SignedDuration::from_mins(1);

impl ProbeResult {
    /// Compares what the provider shows with the content that the operation wants.
    ///
    /// The call counts as made only if it tells itself: if the provider still shows what it showed
    /// before, for example because only a sample or the app that receives a code was replaced, then no
    /// read tells it, and the call is made again. So is an edit if the provider does not show all of its
    /// content. A create is not, if the template has changed since.
    pub fn compare(
        found: Option<&RemoteTemplate>,
        wanted: VersionContent<'_>,
        call: LostCall,
    ) -> Self {
        let Some(found) = found.filter(|found| !found.status.is_deleted()) else {
            return Self::Absent;
        };
        let Some(document) = found.document.as_deref() else { return Self::Different };
        let is_told = match call.replaced {
            Replaced::Nothing => true,
            Replaced::Content(before) => before.is_some() && before != document_key(document),
        };
        let is_later = || {
            let times = found.updated_at.zip(call.sent_at);
            times.is_none_or(|(updated, sent)| sent.duration_since(updated) <= CLOCK_MARGIN)
        };
        let is_equal = match wanted.compare(document) {
            ContentMatch::Equal => true,
            ContentMatch::Alike => {
                call.replaced == Replaced::Nothing && call.may_be_made && is_later()
            }
            ContentMatch::Different => false,
        };
        if is_equal && is_told { Self::Equal } else { Self::Different }
    }

    /// Compares the status that the provider shows with the one that an archiving operation wants.
    pub fn placed(found: Option<&RemoteTemplate>, kind: OperationKind) -> Self {
        match found.filter(|found| !found.status.is_deleted()) {
            None => Self::Absent,
            Some(found) if kind.is_placed(&found.status) => Self::Equal,
            Some(_) => Self::Different,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{rulebook::Category, upstream::RemoteStatus};

    const CREATE: LostCall =
        LostCall { replaced: Replaced::Nothing, may_be_made: true, sent_at: None };

    fn edit_of(found: &RemoteTemplate) -> LostCall {
        let before = found.document.as_deref().and_then(document_key);
        LostCall { replaced: Replaced::Content(before), ..CREATE }
    }

    #[test]
    fn a_probe_compares_contents() {
        let content = |body: &str, image: &str| {
            format!(
                r#"{{"id":"7","name":"a","language":"en","status":"PENDING","category":"UTILITY","components":[{{"type":"HEADER","format":"IMAGE","example":{{"header_handle":["{image}"]}}}},{{"type":"BODY","text":"{body}"}}]}}"#
            )
        };
        let remote = |body| RemoteTemplate::parse(&content(body, "https://cdn/1")).unwrap();
        let new = content("new", "4::x");
        let new = VersionContent { category: Category::Utility, content: &new };
        let compare = |found: &RemoteTemplate, call| ProbeResult::compare(Some(found), new, call);
        assert_eq!(ProbeResult::compare(None, new, CREATE), ProbeResult::Absent);
        assert_eq!(compare(&remote("new"), CREATE), ProbeResult::Equal);
        assert_eq!(compare(&remote("new"), edit_of(&remote("old"))), ProbeResult::Equal);
        assert_eq!(compare(&remote("old"), edit_of(&remote("old"))), ProbeResult::Different);
        // Only the image was replaced, which no read shows.
        assert_eq!(compare(&remote("new"), edit_of(&remote("new"))), ProbeResult::Different);
        let unread = LostCall { replaced: Replaced::Content(None), ..CREATE };
        assert_eq!(compare(&remote("new"), unread), ProbeResult::Different, "nothing tells it");
        let header = RemoteTemplate { document: None, ..remote("new") };
        assert_eq!(compare(&header, CREATE), ProbeResult::Different, "nothing to compare with");
        for status in [RemoteStatus::Deleted, RemoteStatus::PendingDeletion] {
            let deleted = RemoteTemplate { status, ..remote("new") };
            assert_eq!(compare(&deleted, CREATE), ProbeResult::Absent);
        }
    }

    #[test]
    fn what_the_provider_does_not_show_is_that_of_the_call_only_if_it_changed_since() {
        let content = |number: &str| {
            format!(
                r#"{{"id":"7","name":"a","language":"en","status":"PENDING","category":"UTILITY","components":[{{"type":"BUTTONS","buttons":[{{"type":"PHONE_NUMBER","text":"Call","phone_number":"{number}"}}]}}]}}"#
            )
        };
        let time = |second| Timestamp::from_second(second).ok();
        let found = |updated_at| RemoteTemplate {
            updated_at,
            ..RemoteTemplate::parse(&content("+1555")).unwrap()
        };
        let sent = content("+1 555");
        let wanted = VersionContent { category: Category::Utility, content: &sent };
        let edited = LostCall { replaced: Replaced::Content(Some([7; 32])), ..CREATE };
        let foreign = LostCall { may_be_made: false, ..CREATE };
        for (updated_at, call, expected) in [
            (None, CREATE, ProbeResult::Equal),
            (None, foreign, ProbeResult::Different),
            (time(999_940), CREATE, ProbeResult::Equal),
            (time(999_939), CREATE, ProbeResult::Different),
            (time(1_000_001), edit_of(&found(None)), ProbeResult::Different),
            (time(1_000_001), edited, ProbeResult::Different),
        ] {
            let call = LostCall { sent_at: time(1_000_000), ..call };
            let result = ProbeResult::compare(Some(&found(updated_at)), wanted, call);
            assert_eq!(result, expected, "{updated_at:?} {call:?}");
        }
    }

    #[test]
    fn a_probe_of_the_archive_looks_at_the_status() {
        let found = |status: &str| {
            let text = format!(
                r#"{{"id":"7","name":"a","language":"en","status":"{status}","category":"UTILITY"}}"#
            );
            RemoteTemplate::parse(&text).unwrap()
        };
        for (status, archive, unarchive) in [
            ("ARCHIVED", ProbeResult::Equal, ProbeResult::Different),
            ("APPROVED", ProbeResult::Different, ProbeResult::Equal),
            ("REJECTED", ProbeResult::Different, ProbeResult::Equal),
            ("PENDING_DELETION", ProbeResult::Absent, ProbeResult::Absent),
        ] {
            let found = found(status);
            assert_eq!(
                ProbeResult::placed(Some(&found), OperationKind::Archive),
                archive,
                "{status}"
            );
            let placed = ProbeResult::placed(Some(&found), OperationKind::Unarchive);
            assert_eq!(placed, unarchive, "{status}");
        }
        assert_eq!(ProbeResult::placed(None, OperationKind::Archive), ProbeResult::Absent);
    }
}
