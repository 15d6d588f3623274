//! A cache of credentials, so that authentication needs no read from the store.
//!
//! The cache contains only credentials that exist, never the absence of one: a new credential works
//! immediately. All entries belong to one epoch of the store. The cache reads the epoch again every
//! second and drops all entries when it has changed, so that a revocation takes effect within two
//! seconds.

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

use crate::{
    admission::{AccountLoad, AccountLoads},
    credential_use::{CredentialUses, LastUse},
};

/// Age of the epoch after which the cache reads it again.
const EPOCH_REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Time until a running service has learned of a change of an account or a credential, as a rule.
pub const CHANGES_KNOWN_WITHIN: Duration = Duration::from_secs(2);

/// Age of the epoch after which the cache no longer trusts its entries.
const MAX_EPOCH_AGE: Duration = Duration::from_secs(5);

/// Maximum number of entries. Credentials beyond it are read from the store each time.
const MAX_ENTRIES: usize = 100_000;

/// Maximum number of uses that one transaction records, so that other writes do not wait for long.
const MAX_RECORDED_USES: usize = 1_000;

/// A credential and the account that it belongs to.
#[derive(Debug)]
pub(crate) struct CachedCredential {
    pub(crate) credential: Credential,
    pub(crate) account: Arc<Account>,
    /// What the account uses at the moment.
    pub(crate) load: Arc<AccountLoad>,
    /// When the credential was last used.
    pub(crate) last_use: Arc<LastUse>,
}

pub(crate) struct CredentialCache {
    store: Arc<Store>,
    loads: Arc<AccountLoads>,
    uses: CredentialUses,
    state: RwLock<CacheState>,
    refreshing: AtomicBool,
}

#[derive(Default)]
struct CacheState {
    epoch: u64,
    /// When the epoch was last read; `None` before the first read.
    read_at: Option<Duration>,
    credentials: HashMap<(CredentialKind, SecretHash), Arc<CachedCredential>>,
    phones: HashMap<String, AccountId>,
}

impl CredentialCache {
    pub(crate) fn new(store: Arc<Store>, loads: Arc<AccountLoads>) -> Self {
        Self {
            store,
            loads,
            uses: CredentialUses::default(),
            state: RwLock::default(),
            refreshing: AtomicBool::new(false),
        }
    }

    /// The token and the key with these secrets, even if they have expired or were revoked.
    /// `now` is the monotonic time of the request.
    pub(crate) async fn find(
        &self,
        token: SecretHash,
        key: SecretHash,
        now: Duration,
    ) -> Result<[Option<Arc<CachedCredential>>; 2], StoreError> {
        self.refresh(now).await?;
        let wanted = [(CredentialKind::Token, token), (CredentialKind::Key, key)];
        let (mut found, epoch) =
            self.read(|state| (wanted.map(|it| state.credentials.get(&it).cloned()), state.epoch));
        for (found, (kind, hash)) in found.iter_mut().zip(wanted) {
            if found.is_none() {
                *found = self.look_up(kind, hash, epoch).await?;
            }
        }
        Ok(found)
    }

    /// The token with this secret, even if it has expired or was revoked.
    pub(crate) async fn token(
        &self,
        token: SecretHash,
        now: Duration,
    ) -> Result<Option<Arc<CachedCredential>>, StoreError> {
        self.refresh(now).await?;
        let wanted = (CredentialKind::Token, token);
        let (found, epoch) =
            self.read(|state| (state.credentials.get(&wanted).cloned(), state.epoch));
        match found {
            Some(found) => Ok(Some(found)),
            None => self.look_up(wanted.0, wanted.1, epoch).await,
        }
    }

    /// Reads a credential from the store and caches it.
    async fn look_up(
        &self,
        kind: CredentialKind,
        hash: SecretHash,
        epoch: u64,
    ) -> Result<Option<Arc<CachedCredential>>, StoreError> {
        let Some(credential) = self.store.credential(kind, hash).await? else { return Ok(None) };
        let Some(account) = self.store.account(credential.account).await? else { return Ok(None) };
        let load = self.loads.of(account.id);
        let last_use = self.uses.of(credential.id);
        let account = Arc::new(account);
        let found = Arc::new(CachedCredential { credential, account, load, last_use });
        self.insert(epoch, |state| {
            state.credentials.insert((kind, hash), Arc::clone(&found));
        });
        Ok(Some(found))
    }

    /// Writes the uses of credentials that are not in the store yet.
    pub(crate) async fn record_uses(&self) -> Result<(), StoreError> {
        for uses in self.uses.unrecorded().chunks(MAX_RECORDED_USES) {
            self.store.record_credential_use(uses.to_vec()).await?;
            self.uses.mark_recorded(uses);
        }
        Ok(())
    }

    /// The account that owns a phone number.
    pub(crate) async fn phone_owner(&self, phone: &str) -> Result<Option<AccountId>, StoreError> {
        let (cached, epoch) = self.read(|state| (state.phones.get(phone).copied(), state.epoch));
        if cached.is_some() {
            return Ok(cached);
        }
        let owner = self.store.phone_owner(phone).await?;
        if let Some(owner) = owner {
            self.insert(epoch, |state| {
                state.phones.insert(phone.to_owned(), owner);
            });
        }
        Ok(owner)
    }

    /// Reads the epoch if it is due. One request does this while the others use the cached entries,
    /// unless these are too old to be trusted.
    async fn refresh(&self, now: Duration) -> Result<(), StoreError> {
        let age = self.read(|state| state.read_at).map(|at| now.saturating_sub(at));
        let trusted = match age {
            Some(age) if age < EPOCH_REFRESH_INTERVAL => return Ok(()),
            age => age.is_some_and(|age| age < MAX_EPOCH_AGE),
        };
        if trusted && self.refreshing.swap(true, Ordering::Acquire) {
            return Ok(());
        }
        let epoch = self.store.credential_epoch().await;
        self.refreshing.store(false, Ordering::Release);
        match epoch {
            Ok(epoch) => {
                let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
                if state.epoch != epoch {
                    *state = CacheState { epoch, ..CacheState::default() };
                }
                state.read_at = Some(now);
                Ok(())
            }
            Err(_) if trusted => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn read<T>(&self, read: impl FnOnce(&CacheState) -> T) -> T {
        read(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds an entry that was read during `epoch`, unless the epoch has changed or the cache is
    /// full.
    fn insert(&self, epoch: u64, insert: impl FnOnce(&mut CacheState)) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.epoch == epoch && state.credentials.len() + state.phones.len() < MAX_ENTRIES {
            insert(&mut state);
        }
    }
}
