//! API keys and access tokens.

use galley_domain::{account::Scopes, id::AccountId};
use jiff::Timestamp;
use serde_json::json;

use super::{COLUMNS as ACCOUNT_COLUMNS, account};
use crate::{
    Account, Actor, AddCredentialOutcome, Author, Credential, CredentialId, CredentialKind,
    IssueTokenOutcome, NewCredential, RevokeTokenOutcome, RotateCredentialOutcome, SecretHash,
    Store, StoreError, StoreFuture,
    audit::ensure_may_change,
    decisions::audit::AuditedChange,
    encoding::millis,
    engine::{ReadPath, Tx, Value, values},
    stored_row::{Row, StoredRow as _},
};

/// How many tokens an account may have when a client creates another one: those that are neither
/// expired nor revoked, and those that were created within the last hour. The operator may exceed it.
pub const MAX_ACTIVE_TOKENS: usize = 100;

impl Store {
    /// Adds a credential to an account.
    pub fn add_credential(
        &self,
        account: AccountId,
        new: NewCredential,
        by: Author,
    ) -> StoreFuture<'_, AddCredentialOutcome> {
        self.write("add_credential", (account, new, by), |(account, new, by), tx| {
            Box::pin(async {
                tx.lock_credentials().await?;
                add(tx, *account, new, *by).await
            })
        })
    }

    /// Adds a token to an account that has fewer than [`MAX_ACTIVE_TOKENS`]. If a token is the
    /// author, it must be valid at that time, and permit as much as the new one, for as long.
    pub fn issue_token(
        &self,
        account: AccountId,
        new: NewCredential,
        by: Author,
    ) -> StoreFuture<'_, IssueTokenOutcome> {
        Box::pin(async move {
            // A refused request queues no write and takes no lock.
            let (path, values) = (ReadPath::Point, owner_values(account, by.at));
            let owner = self
                .read_one("find_token_owner", path, select_owner(), values, token_owner)
                .await?;
            let caller = match by.actor {
                Actor::Token(id) => {
                    let statement = select("id = $1");
                    self.read_one("find_caller", path, statement, values![id.0], credential).await?
                }
                Actor::Operator | Actor::Service => None,
            };
            if let Some(refusal) = issue_refusal(owner.as_ref(), caller.as_ref(), &new, by) {
                return Ok(refusal);
            }
            ensure_may_change(&*self.engine, account, by).await?;
            self.write("issue_token", (account, new, by), |(account, new, by), tx| {
                let (account, by) = (*account, *by);
                Box::pin(async move {
                    tx.lock_credentials().await?;
                    let values = owner_values(account, by.at);
                    let owner = tx.query_one(&select_owner(), &values, token_owner).await?;
                    let caller = match by.actor {
                        Actor::Token(id) => by_id(tx, id).await?,
                        Actor::Operator | Actor::Service => None,
                    };
                    let refusal = match issue_refusal(owner.as_ref(), caller.as_ref(), new, by) {
                        Some(refusal) => refusal,
                        None => match add(tx, account, new, by).await? {
                            AddCredentialOutcome::Added(id) => {
                                return Ok(IssueTokenOutcome::Issued(id));
                            }
                            AddCredentialOutcome::SecretTaken => IssueTokenOutcome::SecretTaken,
                            AddCredentialOutcome::NotFound => IssueTokenOutcome::NotFound,
                        },
                    };
                    // A refusal waits for no sync.
                    Ok(tx.refuse(refusal))
                })
            })
            .await
        })
    }

    /// Adds a replacement to the account of `old`, unless `old` is expired or revoked. `old` expires
    /// at `old_ends_at`, unless it expires earlier. Without an expiry of its own, the replacement
    /// expires when `old` would have expired: otherwise a rotation would turn a temporary credential
    /// into a permanent one. Without a name of its own, it has that of `old`.
    pub fn rotate_credential(
        &self,
        old: CredentialId,
        new: NewCredential,
        old_ends_at: Timestamp,
        by: Author,
    ) -> StoreFuture<'_, RotateCredentialOutcome> {
        let input = (old, new, old_ends_at, by);
        self.write_for_operator("rotate_credential", input, |(old, new, old_ends_at, by), tx| {
            Box::pin(rotate(tx, *old, new, *old_ends_at, *by))
        })
    }

    /// Revokes a credential; `false` if it does not exist or was already revoked.
    pub fn revoke_credential(&self, id: CredentialId, by: Author) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let write = self.write_for_operator("revoke_credential", (id, by), |&(id, by), tx| {
                Box::pin(revoke(tx, None, id, by))
            });
            Ok(write.await? == RevokeTokenOutcome::Revoked)
        })
    }

    /// Revokes a token of an account.
    pub fn revoke_token(
        &self,
        account: AccountId,
        id: CredentialId,
        by: Author,
    ) -> StoreFuture<'_, RevokeTokenOutcome> {
        self.write_for_operator("revoke_token", (account, id, by), |&(account, id, by), tx| {
            Box::pin(revoke(tx, Some(account), id, by))
        })
    }

    /// The tokens of an account that are neither expired nor revoked at `at`, oldest first.
    pub fn active_tokens(
        &self,
        account: AccountId,
        at: Timestamp,
    ) -> StoreFuture<'_, Vec<Credential>> {
        let statement = select(
            "account_id = $1 AND kind = $2 AND revoked_at IS NULL AND \
             (expires_at IS NULL OR expires_at > $3) ORDER BY id",
        );
        let values = values![account, TOKEN, at];
        self.read("active_tokens", ReadPath::Point, statement, values, credential)
    }

    /// The credentials of an account, oldest first, including expired and revoked ones.
    pub fn credentials(&self, account: AccountId) -> StoreFuture<'_, Vec<Credential>> {
        let statement = select("account_id = $1 ORDER BY id");
        self.read("credentials", ReadPath::Point, statement, values![account], credential)
    }

    /// The credential with this secret, even if it is expired or revoked.
    pub fn credential(
        &self,
        kind: CredentialKind,
        hash: SecretHash,
    ) -> StoreFuture<'_, Option<Credential>> {
        let statement = select("kind = $1 AND hash = $2");
        let values = values![kind.as_str(), hash];
        self.read_one("credential", ReadPath::Point, statement, values, credential)
    }

    /// Records when credentials were last used. An earlier time than the recorded one changes
    /// nothing, and neither does a credential that does not exist.
    pub fn record_credential_use(
        &self,
        uses: Vec<(CredentialId, Timestamp)>,
    ) -> StoreFuture<'_, ()> {
        self.write("record_credential_use", uses, |uses, tx| {
            Box::pin(async move {
                // Two instances never wait for each other in a circle, because each locks the
                // credentials.
                tx.lock_credentials().await?;
                let uses: Vec<_> = uses.iter().map(|(id, at)| (id.0, millis(*at))).collect();
                let pairs =
                    tx.dialect().either("json_each($1)", "json_array_elements($1::text::json)");
                // Another instance may have recorded a use of the same minute.
                let update = format!(
                    "UPDATE credential SET last_used_at = used.at FROM (SELECT \
                     CAST(value ->> 0 AS BIGINT) AS id, CAST(value ->> 1 AS BIGINT) AS at \
                     FROM {pairs}) AS used WHERE credential.id = used.id \
                     AND coalesce(credential.last_used_at, 0) < used.at"
                );
                tx.execute(&update, &values![json!(uses).to_string()]).await.map(drop)
            })
        })
    }

    /// A number that increases with every change that invalidates cached accounts or credentials.
    pub fn credential_epoch(&self) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let (method, path) = ("credential_epoch", ReadPath::Point);
            let statement = "SELECT epoch FROM credential_epoch";
            let epoch =
                self.read_one(method, path, statement, [], |row| row.number("epoch")).await?;
            Ok(epoch.unwrap_or_default())
        })
    }
}

/// The columns that [`credential`] reads.
const COLUMNS: &str =
    "id, account_id, kind, name, scopes, created_at, last_used_at, expires_at, revoked_at";

const TOKEN: &str = CredentialKind::Token.as_str();

fn select(condition: &str) -> String {
    format!("SELECT {COLUMNS} FROM credential WHERE {condition}")
}

/// An account that gets a token.
struct TokenOwner {
    account: Account,
    /// How many of its tokens count towards the maximum.
    tokens: u64,
}

/// Reads the owner (`$1`) of a token (`$2`: the kind) to be issued at `$3`; tokens that were created
/// after `$4` count.
fn select_owner() -> String {
    format!(
        "SELECT {ACCOUNT_COLUMNS}, (SELECT count(*) FROM credential WHERE account_id = $1 \
         AND kind = $2 AND (revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3) \
         OR created_at > $4)) AS tokens FROM account WHERE id = $1 AND deleted_at IS NULL"
    )
}

/// The owner in a row of [`select_owner`].
fn token_owner(row: &Row<'_>) -> Result<TokenOwner, StoreError> {
    Ok(TokenOwner { account: account(row)?, tokens: row.number("tokens")? })
}

fn owner_values(account: AccountId, at: Timestamp) -> [Value<'static>; 4] {
    // A revoked or expired token counts for an hour after its creation: otherwise a client could fill the
    // store by creating and revoking tokens.
    let issued_since = millis(at).saturating_sub(3_600_000);
    values![account, TOKEN, at, issued_since]
}

async fn by_id(tx: &mut Tx<'_>, id: CredentialId) -> Result<Option<Credential>, StoreError> {
    tx.query_one(&select("id = $1"), &values![id.0], credential).await
}

/// The credentials of an account that are not revoked, oldest first.
pub(crate) async fn unrevoked(
    tx: &mut Tx<'_>,
    account: AccountId,
) -> Result<Vec<Credential>, StoreError> {
    let statement = select("account_id = $1 AND revoked_at IS NULL ORDER BY id");
    tx.query(&statement, &values![account], credential).await
}

/// Whether a credential of the same kind has the same secret.
pub(super) async fn is_in_use(tx: &mut Tx<'_>, new: &NewCredential) -> Result<bool, StoreError> {
    let statement = "SELECT 1 FROM credential WHERE kind = $1 AND hash = $2";
    tx.exists(statement, &values![new.kind.as_str(), new.hash]).await
}

/// Adds a credential and records it in the audit feed. The credentials are locked.
pub(crate) async fn add(
    tx: &mut Tx<'_>,
    account: AccountId,
    new: &NewCredential,
    by: Author,
) -> Result<AddCredentialOutcome, StoreError> {
    let added = insert(tx, account, new, by.at).await?;
    if let AddCredentialOutcome::Added(id) = added {
        tx.audit(account, AuditedChange::credential_created(id, new), by)?;
    }
    Ok(added)
}

async fn insert(
    tx: &mut Tx<'_>,
    account: AccountId,
    new: &NewCredential,
    at: Timestamp,
) -> Result<AddCredentialOutcome, StoreError> {
    let insert = "INSERT INTO credential (account_id, kind, hash, scopes, created_at, expires_at, \
                  name) SELECT id, $2, $3, $4, $5, $6, $7 FROM account WHERE id = $1 AND \
                  deleted_at IS NULL ON CONFLICT (kind, hash) DO NOTHING RETURNING id";
    let scopes = new.scopes.to_string();
    let values =
        values![account, new.kind.as_str(), new.hash, scopes, at, new.expires_at, &new.name];
    if let Some(id) = tx.query_one(insert, &values, |row| row.number("id")).await? {
        return Ok(AddCredentialOutcome::Added(CredentialId(id)));
    }
    let owner = "SELECT 1 FROM account WHERE id = $1 AND deleted_at IS NULL";
    let has_owner = tx.exists(owner, &values![account]).await?;
    let (taken, not_found) = (AddCredentialOutcome::SecretTaken, AddCredentialOutcome::NotFound);
    Ok(if has_owner { taken } else { not_found })
}

async fn rotate(
    tx: &mut Tx<'_>,
    old: CredentialId,
    new: &NewCredential,
    old_ends_at: Timestamp,
    by: Author,
) -> Result<RotateCredentialOutcome, StoreError> {
    tx.lock_credentials().await?;
    let Some(old) = by_id(tx, old).await? else { return Ok(RotateCredentialOutcome::NotFound) };
    if let Some(revoked_at) = old.revoked_at {
        return Ok(RotateCredentialOutcome::Revoked(revoked_at));
    }
    if let Some(expired_at) = old.expires_at.filter(|end| *end <= by.at) {
        return Ok(RotateCredentialOutcome::Expired(expired_at));
    }
    let name = if new.name.is_empty() { old.name.clone() } else { new.name.clone() };
    let expires_at = new.expires_at.or(old.expires_at);
    let replacement = NewCredential { expires_at, name, ..*new };
    let old_ends_at = old.expires_at.map_or(old_ends_at, |end| end.min(old_ends_at));
    let id = match insert(tx, old.account, &replacement, by.at).await? {
        AddCredentialOutcome::Added(id) => id,
        AddCredentialOutcome::SecretTaken => return Ok(RotateCredentialOutcome::SecretTaken),
        AddCredentialOutcome::NotFound => return Ok(RotateCredentialOutcome::NotFound),
    };
    let expire = "UPDATE credential SET expires_at = $2 WHERE id = $1";
    tx.defer(expire, &values![old.id.0, old_ends_at])?;
    let rotated = AuditedChange::credential_rotated(&old, id, &replacement, old_ends_at);
    tx.audit(old.account, rotated, by)?;
    tx.credentials_changed().await?;
    Ok(RotateCredentialOutcome::Rotated { id, expires_at, old_ends_at })
}

/// Revokes a credential, or a token of this account.
async fn revoke(
    tx: &mut Tx<'_>,
    account: Option<AccountId>,
    id: CredentialId,
    by: Author,
) -> Result<RevokeTokenOutcome, StoreError> {
    tx.lock_credentials().await?;
    let is_revocable = |it: &Credential| {
        account.is_none_or(|id| it.account == id && it.kind == CredentialKind::Token)
    };
    let Some(found) = by_id(tx, id).await?.filter(is_revocable) else {
        return Ok(tx.refuse(RevokeTokenOutcome::NotFound));
    };
    if found.revoked_at.is_some() {
        return Ok(tx.refuse(RevokeTokenOutcome::AlreadyRevoked));
    }
    tx.defer("UPDATE credential SET revoked_at = $2 WHERE id = $1", &values![id.0, by.at])?;
    tx.audit(found.account, AuditedChange::credential_revoked(&found), by)?;
    tx.credentials_changed().await?;
    Ok(RevokeTokenOutcome::Revoked)
}

/// Why an author may not add a token to an account, if it may not. `caller` is the author's token:
/// it is read again in the transaction, because a cached one may have been revoked since.
fn issue_refusal(
    owner: Option<&TokenOwner>,
    caller: Option<&Credential>,
    new: &NewCredential,
    by: Author,
) -> Option<IssueTokenOutcome> {
    let Some(TokenOwner { account, tokens }) = owner else {
        return Some(IssueTokenOutcome::NotFound);
    };
    if let Actor::Token(_) = by.actor {
        let own = caller.filter(|it| it.account == account.id && it.kind == CredentialKind::Token);
        let Some(caller) = own else { return Some(IssueTokenOutcome::NotFound) };
        if caller.revoked_at.is_some() {
            return Some(IssueTokenOutcome::CallerRevoked);
        }
        if caller.expires_at.is_some_and(|end| end <= by.at) {
            return Some(IssueTokenOutcome::CallerExpired);
        }
        if account.disabled_at.is_some() {
            return Some(IssueTokenOutcome::AccountDisabled);
        }
        // A client with two tokens would be its own second person.
        if account.four_eyes {
            return Some(IssueTokenOutcome::FourEyes);
        }
        let lives_longer =
            caller.expires_at.is_some_and(|end| new.expires_at.is_none_or(|wanted| wanted > end));
        if lives_longer || !new.scopes.without(caller.scopes).is_empty() {
            return Some(IssueTokenOutcome::ExceedsCaller);
        }
    }
    (*tokens >= MAX_ACTIVE_TOKENS as u64).then_some(IssueTokenOutcome::TooMany)
}

/// The credential in a row.
fn credential(row: &Row<'_>) -> Result<Credential, StoreError> {
    Ok(Credential {
        id: CredentialId(row.number("id")?),
        account: row.account_id("account_id")?,
        kind: row.parsed("kind", CredentialKind::parse)?,
        name: row.value("name")?,
        scopes: row.parsed("scopes", |scopes| Scopes::parse(scopes).ok())?,
        created_at: row.timestamp("created_at")?,
        last_used_at: row.optional_timestamp("last_used_at")?,
        expires_at: row.optional_timestamp("expires_at")?,
        revoked_at: row.optional_timestamp("revoked_at")?,
    })
}
