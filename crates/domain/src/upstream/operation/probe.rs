//! What a read at the provider tells about a call whose outcome is not known.

use super::OperationKind;
use crate::{
    document::Document,
    upstream::{
        content::{ComparableContent, comparable},
        failure::CallFailure,
        observation::RemoteTemplate,
    },
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

impl ProbeResult {
    /// Compares what the provider shows with the content that the operation wants. `previous` is the
    /// content before an edit: if the provider shows both alike, for example because only a sample
    /// was replaced, then no read tells whether the edit was made, and it counts as not made.
    pub fn compare(
        found: Option<&RemoteTemplate>,
        wanted: &ComparableContent,
        previous: Option<&ComparableContent>,
    ) -> Self {
        let Some(found) = found.filter(|found| !found.status.is_deleted()) else {
            return Self::Absent;
        };
        let document = found.document.as_deref();
        let document = document.and_then(|text| Document::parse(text.as_bytes()).ok());
        let is_equal = document.is_some_and(|it| comparable(it.root()) == *wanted);
        if is_equal && previous != Some(wanted) { Self::Equal } else { Self::Different }
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
    use crate::upstream::RemoteStatus;

    #[test]
    fn a_probe_compares_contents() {
        let content = |body: &str, image: &str| {
            format!(
                r#"{{"id":"7","name":"a","language":"en","status":"PENDING","category":"UTILITY","components":[{{"type":"HEADER","format":"IMAGE","example":{{"header_handle":["{image}"]}}}},{{"type":"BODY","text":"{body}"}}]}}"#
            )
        };
        let remote = |body| RemoteTemplate::parse(&content(body, "https://cdn/1")).unwrap();
        let wanted =
            |body| comparable(Document::parse(content(body, "4::x").as_bytes()).unwrap().root());
        let (old, new) = (wanted("old"), wanted("new"));
        let compare =
            |found: &RemoteTemplate, previous| ProbeResult::compare(Some(found), &new, previous);
        assert_eq!(ProbeResult::compare(None, &new, None), ProbeResult::Absent);
        assert_eq!(compare(&remote("new"), None), ProbeResult::Equal);
        assert_eq!(compare(&remote("new"), Some(&old)), ProbeResult::Equal);
        assert_eq!(compare(&remote("old"), Some(&old)), ProbeResult::Different);
        // Only the image was replaced, which no read shows.
        assert_eq!(compare(&remote("new"), Some(&new)), ProbeResult::Different);
        let header = RemoteTemplate { document: None, ..remote("new") };
        assert_eq!(compare(&header, None), ProbeResult::Different, "nothing to compare with");
        for status in [RemoteStatus::Deleted, RemoteStatus::PendingDeletion] {
            let deleted = RemoteTemplate { status, ..remote("new") };
            assert_eq!(compare(&deleted, None), ProbeResult::Absent);
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
