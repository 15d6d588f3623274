//! Encodings of stored values that both backends share.

use std::borrow::Cow;

use galley_domain::{
    id::AccountId,
    template::{message_text::MessageText, sample, search_terms::template_terms},
};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use crate::{
    Actor, CredentialId, IDEMPOTENCY_HOURS, MEDIA_QUOTA_UNIT_BYTES, NewTemplate, Quota,
    StoredTemplate,
};

/// A timestamp as it is stored: milliseconds since the Unix epoch.
pub(crate) fn millis(at: Timestamp) -> i64 {
    at.as_millisecond()
}

/// `at` plus `delay`, saturating at the largest timestamp.
pub(crate) fn later(at: Timestamp, delay: std::time::Duration) -> Timestamp {
    let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
    at.checked_add(delay).unwrap_or(Timestamp::MAX)
}

/// An id as an SQL parameter.
pub(crate) fn key(id: u64) -> i64 {
    i64::try_from(id).expect("ids are below 2^53")
}

/// A lookup text without U+0000, which PostgreSQL neither stores nor accepts as a parameter. A
/// space replaces it: ids, handles, languages and phone numbers contain no spaces, so the lookup
/// finds nothing.
pub(crate) fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', " ")) } else { Cow::Borrowed(text) }
}

/// A quota as it is stored: `None` for the default, 0 for no limit.
pub(crate) fn stored_quota(quota: Quota) -> Option<i64> {
    match quota {
        Quota::Default => None,
        Quota::Unlimited => Some(0),
        Quota::Max(max) => Some(key(max.max(1))),
    }
}

/// A quota from its stored value.
pub(crate) fn quota(stored: Option<u64>) -> Quota {
    match stored {
        None => Quota::Default,
        Some(0) => Quota::Unlimited,
        Some(max) => Quota::Max(max),
    }
}

// Actors are stored as credential ids, which start at 1; these values are free.
const OPERATOR: i64 = 0;
const SERVICE: i64 = -1;

/// Decodes a stored actor; `None` if the value is invalid.
pub(crate) fn actor_from_key(stored: i64) -> Option<Actor> {
    match stored {
        OPERATOR => Some(Actor::Operator),
        SERVICE => Some(Actor::Service),
        id => Some(Actor::Token(CredentialId(u64::try_from(id).ok()?))),
    }
}

/// Encodes an actor for storage.
pub(crate) fn actor_key(actor: Actor) -> i64 {
    match actor {
        Actor::Token(CredentialId(id)) => key(id),
        Actor::Operator => OPERATOR,
        Actor::Service => SERVICE,
    }
}

/// The first 16 bytes of a hash, which are enough for an index.
fn truncate(hash: [u8; 32]) -> [u8; 16] {
    *hash.first_chunk().expect("32 bytes begin with 16")
}

/// The index keys of a new template. They are hashes, so their size does not depend on the length
/// of names and texts.
pub(crate) struct LookupKeys {
    pub(crate) unique_key: [u8; 16],
    pub(crate) idempotency: Option<[u8; 16]>,
    pub(crate) text: Option<[u8; 16]>,
    /// Whether the content references uploaded media.
    pub(crate) references_media: bool,
}

impl LookupKeys {
    pub(crate) fn of(new: &NewTemplate) -> Self {
        let idempotency = new.idempotency.map(|it| idempotency_hash(new.account, it.key));
        // Duplicate texts are only detected among templates that belong to a translation group.
        let text = new.translation_group.and_then(|_| MessageText::from_template(&new.template));
        let text = text.map(|text| text_hash(new.account, &text));
        let references_media = sample::referenced_names(new.template.content()).next().is_some();
        let unique_key = unique_key_hash(&new.unique_key);
        Self { unique_key, idempotency, text, references_media }
    }
}

/// The index key of an account's message text.
pub(crate) fn text_hash(account: AccountId, text: &MessageText) -> [u8; 16] {
    let (body, footer) = text.texts();
    // Texts contain no control characters other than line breaks, so 0 is an unambiguous separator.
    let hash = Sha256::new().chain_update(account.get().to_be_bytes()).chain_update(body);
    let hash =
        footer.into_iter().fold(hash, |hash, footer| hash.chain_update([0]).chain_update(footer));
    truncate(hash.finalize().into())
}

/// The index key of a template's unique key.
pub(crate) fn unique_key_hash(unique_key: &str) -> [u8; 16] {
    truncate(Sha256::digest(unique_key.as_bytes()).into())
}

/// The index key of an idempotency record. It includes the account, so equal keys of two accounts
/// do not collide.
pub(crate) fn idempotency_hash(account: AccountId, idempotency_key: [u8; 16]) -> [u8; 16] {
    let hash =
        Sha256::new().chain_update(account.get().to_be_bytes()).chain_update(idempotency_key);
    truncate(hash.finalize().into())
}

/// Idempotency records created at or before this time have expired.
pub(crate) fn idempotency_cutoff(at: Timestamp) -> i64 {
    millis(
        at.saturating_sub(SignedDuration::from_hours(IDEMPOTENCY_HOURS)).unwrap_or(Timestamp::MIN),
    )
}

/// Scheme and host of a URL. Events carry only these: the rest of the URL is often a secret, and
/// more people read events than endpoint settings.
#[must_use]
pub fn origin(url: &str) -> String {
    url.split('/').take(3).collect::<Vec<_>>().join("/")
}

/// All search index terms of a template: its words and its filter values, each with the account's
/// prefix.
pub(crate) fn index_terms(account: AccountId, stored: &StoredTemplate) -> Vec<String> {
    let prefix = account_prefix(account);
    let template = &stored.template;
    let filters = [
        filter_term('s', stored.state.status().as_str()),
        filter_term('c', template.category().as_str()),
        filter_term('l', template.language()),
    ];
    let terms = template_terms(template).into_iter().chain(filters);
    terms.map(|term| [&*prefix, &term].concat()).collect()
}

/// A filter value as an index term. The leading `§` distinguishes it from words, which contain only
/// letters and digits; the value is hex-encoded because the index ignores case and punctuation.
pub(crate) fn filter_term(kind: char, value: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = value.bytes().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits = digits.map(|digit| char::from(DIGITS[usize::from(digit)]));
    ['§', kind].into_iter().chain(digits).collect()
}

/// The prefix of an account's index terms: its id in base 32, always eleven characters.
pub(crate) fn account_prefix(account: AccountId) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    let digit = |position: u32| {
        char::from(DIGITS[usize::try_from(account.get() >> (5 * position) & 31).unwrap_or(0)])
    };
    (0..11).rev().map(digit).collect()
}

/// How many bytes of the media quota a file uses: its size rounded up to whole units, plus its
/// name.
pub(crate) fn quota_bytes(bytes: u64, name: &str) -> u64 {
    bytes.max(1).next_multiple_of(MEDIA_QUOTA_UNIT_BYTES).saturating_add(name.len() as u64)
}
