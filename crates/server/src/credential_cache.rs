//! Good credentials, kept in memory so that a request reads nothing from disk.
//!
//! Only what was found is kept, never that something was not: a new credential works at once.
//! Everything kept belongs to one epoch of the store; the epoch is read again every second, and
//! when it has moved all is forgotten, so that a revocation counts within a second or two.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use galley_domain::id::AccountId;
use galley_store::{Account, Credential, CredentialKind, SecretHash, Store, StoreError};

/// After this long the epoch is read again.
const FRESH: Duration = Duration::from_secs(1);

/// After this long without having read the epoch nothing kept is trusted.
const STALE: Duration = Duration::from_secs(5);

/// More than this is not kept; whoever has more credentials in use waits for the disk.
const MOST: usize = 100_000;

/// A credential and the account it belongs to.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) credential: Credential,
    pub(crate) account: Arc<Account>,
}

pub(crate) struct Credentials {
    store: Arc<dyn Store>,
    kept: RwLock<Kept>,
    refreshing: AtomicBool,
}

#[derive(Default)]
struct Kept {
    epoch: u64,
    /// When the epoch was last read; never, at first.
    read_at: Option<Duration>,
    known: HashMap<(CredentialKind, SecretHash), Arc<Known>>,
    phones: HashMap<String, AccountId>,
}

impl Credentials {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, kept: RwLock::default(), refreshing: AtomicBool::new(false) }
    }

    /// The token and the key with these secrets, ended or not, for somebody who asks `now`.
    pub(crate) async fn find(
        &self,
        token: SecretHash,
        key: SecretHash,
        now: Duration,
    ) -> Result<[Option<Arc<Known>>; 2], StoreError> {
        self.refresh(now).await?;
        let wanted = [(CredentialKind::Token, token), (CredentialKind::Key, key)];
        let (mut found, epoch) =
            self.with(|kept| (wanted.map(|it| kept.known.get(&it).cloned()), kept.epoch));
        for (found, (kind, hash)) in found.iter_mut().zip(wanted) {
            if found.is_none() {
                *found = self.look_up(kind, hash, epoch).await?;
            }
        }
        Ok(found)
    }

    /// The token with this secret alone, ended or not.
    pub(crate) async fn token(
        &self,
        token: SecretHash,
        now: Duration,
    ) -> Result<Option<Arc<Known>>, StoreError> {
        self.refresh(now).await?;
        let wanted = (CredentialKind::Token, token);
        let (found, epoch) = self.with(|kept| (kept.known.get(&wanted).cloned(), kept.epoch));
        match found {
            Some(found) => Ok(Some(found)),
            None => self.look_up(wanted.0, wanted.1, epoch).await,
        }
    }

    /// Asks the store, and keeps what it finds.
    async fn look_up(
        &self,
        kind: CredentialKind,
        hash: SecretHash,
        epoch: u64,
    ) -> Result<Option<Arc<Known>>, StoreError> {
        let Some(credential) = self.store.credential(kind, hash).await? else { return Ok(None) };
        let Some(account) = self.store.account(credential.account).await? else { return Ok(None) };
        let known = Arc::new(Known { credential, account: Arc::new(account) });
        self.keep(epoch, |kept| {
            kept.known.insert((kind, hash), Arc::clone(&known));
        });
        Ok(Some(known))
    }

    /// Whose phone number it is.
    pub(crate) async fn phone_owner(&self, phone: &str) -> Result<Option<AccountId>, StoreError> {
        let (kept, epoch) = self.with(|kept| (kept.phones.get(phone).copied(), kept.epoch));
        if kept.is_some() {
            return Ok(kept);
        }
        let owner = self.store.phone_owner(phone).await?;
        if let Some(owner) = owner {
            self.keep(epoch, |kept| {
                kept.phones.insert(phone.to_owned(), owner);
            });
        }
        Ok(owner)
    }

    /// Reads the epoch if that is due. One request does it; the others go on with what is kept,
    /// unless that is too old to be trusted.
    async fn refresh(&self, now: Duration) -> Result<(), StoreError> {
        let age = self.with(|kept| kept.read_at).map(|at| now.saturating_sub(at));
        let trusted = match age {
            Some(age) if age < FRESH => return Ok(()),
            age => age.is_some_and(|age| age < STALE),
        };
        if trusted && self.refreshing.swap(true, Ordering::Acquire) {
            return Ok(());
        }
        let epoch = self.store.credential_epoch().await;
        self.refreshing.store(false, Ordering::Release);
        match epoch {
            Ok(epoch) => {
                let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
                if kept.epoch != epoch {
                    *kept = Kept { epoch, ..Kept::default() };
                }
                kept.read_at = Some(now);
                Ok(())
            }
            Err(_) if trusted => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn with<T>(&self, read: impl FnOnce(&Kept) -> T) -> T {
        read(&self.kept.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps what was read while `epoch` was current, unless the epoch has moved since.
    fn keep(&self, epoch: u64, insert: impl FnOnce(&mut Kept)) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if kept.epoch == epoch && kept.known.len() + kept.phones.len() < MOST {
            insert(&mut kept);
        }
    }
}
