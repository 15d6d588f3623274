//! How things are kept, the same in every store.

use galley_domain::{
    id::AccountId,
    template::{message_text::MessageText, sample, search_terms::words_of},
};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use crate::{
    Actor, CredentialId, IDEMPOTENCY_HOURS, MEDIA_QUOTA_UNIT_BYTES, NewTemplate, StoredTemplate,
};

/// A moment as it is kept: whole milliseconds.
pub(crate) fn millis(at: Timestamp) -> i64 {
    at.as_millisecond()
}

/// So long after a moment.
pub(crate) fn later(at: Timestamp, delay: std::time::Duration) -> Timestamp {
    let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
    at.checked_add(delay).unwrap_or(Timestamp::MAX)
}

/// An id for a statement.
pub(crate) fn key(id: u64) -> i64 {
    i64::try_from(id).expect("ids are below 2^53")
}

/// Credentials have numbers from 1.
const OPERATOR: i64 = 0;
const SERVICE: i64 = -1;

pub(crate) fn actor(kept: i64) -> Option<Actor> {
    match kept {
        OPERATOR => Some(Actor::Operator),
        SERVICE => Some(Actor::Service),
        id => Some(Actor::Token(CredentialId(u64::try_from(id).ok()?))),
    }
}

pub(crate) fn actor_key(actor: Actor) -> i64 {
    match actor {
        Actor::Token(CredentialId(id)) => key(id),
        Actor::Operator => OPERATOR,
        Actor::Service => SERVICE,
    }
}

/// As much of a hash as an index needs.
fn head(hash: [u8; 32]) -> [u8; 16] {
    *hash.first_chunk().expect("32 bytes begin with 16")
}

/// What a creation is found by: short, whatever the length of names and keys.
pub(crate) struct Hashes {
    pub(crate) claim: [u8; 16],
    pub(crate) record: Option<[u8; 16]>,
    pub(crate) wording: Option<[u8; 16]>,
    /// Whether it names files that are kept for it.
    pub(crate) names_samples: bool,
}

impl Hashes {
    pub(crate) fn of(new: &NewTemplate) -> Self {
        let record = new.idempotency.map(|it| record_key(new.account, it.key));
        // Where languages share a name, templates are compared by their words as well.
        let wording = new.family.and_then(|_| MessageText::of(&new.template));
        let wording = wording.map(|wording| wording_key(new.account, &wording));
        let names_samples = sample::named_in(new.template.content()).next().is_some();
        Self { claim: claim_key(&new.claim), record, wording, names_samples }
    }
}

pub(crate) fn wording_key(account: AccountId, wording: &MessageText) -> [u8; 16] {
    let (body, footer) = wording.texts();
    // No text holds a control character but line breaks: nothing else can give the same bytes.
    let hash = Sha256::new().chain_update(account.get().to_be_bytes()).chain_update(body);
    let hash =
        footer.into_iter().fold(hash, |hash, footer| hash.chain_update([0]).chain_update(footer));
    head(hash.finalize().into())
}

pub(crate) fn claim_key(claim: &str) -> [u8; 16] {
    head(Sha256::digest(claim.as_bytes()).into())
}

/// What a record is found by. Keys of different accounts are strangers.
pub(crate) fn record_key(account: AccountId, idempotency_key: [u8; 16]) -> [u8; 16] {
    let hash =
        Sha256::new().chain_update(account.get().to_be_bytes()).chain_update(idempotency_key);
    head(hash.finalize().into())
}

/// Records made at or before this moment have run out.
pub(crate) fn oldest_record(at: Timestamp) -> i64 {
    millis(
        at.saturating_sub(SignedDuration::from_hours(IDEMPOTENCY_HOURS)).unwrap_or(Timestamp::MIN),
    )
}

/// Scheme and host of an address. What comes after them is often a secret, and events are read by
/// more people than endpoints are.
pub(crate) fn origin(url: &str) -> String {
    url.split('/').take(3).collect::<Vec<_>>().join("/")
}

/// All that a template is found by.
pub(crate) fn entry(account: AccountId, template: &StoredTemplate) -> Vec<String> {
    let owner = owner(account);
    let kept = &template.template;
    let filters = [
        filter('s', template.state.status().as_str()),
        filter('c', kept.category().as_str()),
        filter('l', kept.language()),
    ];
    let words = words_of(kept).into_iter().chain(filters);
    words.map(|word| format!("{owner}{word}")).collect()
}

/// A filter as a word: the sign keeps it apart from the words of texts, which are letters and
/// digits only. Written in hexadecimal digits, since the index knows no other signs and no case.
pub(crate) fn filter(kind: char, value: &str) -> String {
    let digits = value.bytes().map(|byte| format!("{byte:02x}"));
    ['§', kind].into_iter().map(String::from).chain(digits).collect()
}

/// The letters that stand before each word of an account, always eleven of them.
pub(crate) fn owner(account: AccountId) -> String {
    const LETTERS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    let letter = |place: u32| {
        char::from(LETTERS[usize::try_from(account.get() >> (5 * place) & 31).unwrap_or(0)])
    };
    (0..11).rev().map(letter).collect()
}

/// What so many bytes of a file take of its account's room, with its name.
pub(crate) fn charge(bytes: u64, name: &str) -> u64 {
    bytes.max(1).next_multiple_of(MEDIA_QUOTA_UNIT_BYTES).saturating_add(name.len() as u64)
}
