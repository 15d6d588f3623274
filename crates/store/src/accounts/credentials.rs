//! API keys and access tokens.

mod rows;

use galley_domain::id::AccountId;
use jiff::Timestamp;
use serde_json::json;

pub use self::rows::MAX_ACTIVE_TOKENS;
use self::rows::{
    COLUMNS, RotationPlan, credential, issue_refusal, issued_since, plan_rotation, revocable,
    select_owner, token_owner,
};
use crate::{
    Actor, AddCredentialOutcome, Author, Credential, CredentialId, CredentialKind,
    IssueTokenOutcome, NewCredential, RevokeTokenOutcome, RotateCredentialOutcome, SecretHash,
    Store, StoreError,
    audit::ensure_may_change,
    decisions::audit::AuditedChange,
    encoding::millis,
    engine::{ReadPath, Tx, Value, values},
    stored_row::StoredRow as _,
};

impl Store {
    /// Adds a credential to an account.
    pub async fn add_credential(
        &self,
        account: AccountId,
        new: NewCredential,
        by: Author,
    ) -> Result<AddCredentialOutcome, StoreError> {
        self.write("add_credential", (account, new, by), |(account, new, by), tx| {
            Box::pin(async {
                tx.lock_credentials().await?;
                add(tx, *account, new, *by).await
            })
        })
        .await
    }

    /// Adds a token to an account that has fewer than [`MAX_ACTIVE_TOKENS`]. If a token is the
    /// author, it must be valid at that time, and permit as much as the new one, for as long.
    pub async fn issue_token(
        &self,
        account: AccountId,
        new: NewCredential,
        by: Author,
    ) -> Result<IssueTokenOutcome, StoreError> {
        // A refused request queues no write and takes no lock.
        let (path, values) = (ReadPath::Point, owner_values(account, by.at));
        let owner =
            self.read_one("find_token_owner", path, select_owner(), values, token_owner).await?;
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
            Box::pin(issue(tx, *account, new, *by))
        })
        .await
    }

    /// Adds a replacement to the account of `old`, unless `old` is expired or revoked. `old` expires
    /// at `old_ends_at`, unless it expires earlier. Without an expiry of its own, the replacement
    /// expires when `old` would have expired; without a name of its own, it has that of `old`.
    pub async fn rotate_credential(
        &self,
        old: CredentialId,
        new: NewCredential,
        old_ends_at: Timestamp,
        by: Author,
    ) -> Result<RotateCredentialOutcome, StoreError> {
        let input = (old, new, old_ends_at, by);
        self.write_for_operator("rotate_credential", input, |(old, new, old_ends_at, by), tx| {
            Box::pin(rotate(tx, *old, new, *old_ends_at, *by))
        })
        .await
    }

    /// Revokes a credential; `false` if it does not exist or was already revoked.
    pub async fn revoke_credential(
        &self,
        id: CredentialId,
        by: Author,
    ) -> Result<bool, StoreError> {
        let write = self.write_for_operator("revoke_credential", (id, by), |&(id, by), tx| {
            Box::pin(revoke(tx, None, id, by))
        });
        Ok(write.await? == RevokeTokenOutcome::Revoked)
    }

    /// Revokes a token of an account.
    pub async fn revoke_token(
        &self,
        account: AccountId,
        id: CredentialId,
        by: Author,
    ) -> Result<RevokeTokenOutcome, StoreError> {
        self.write_for_operator("revoke_token", (account, id, by), |&(account, id, by), tx| {
            Box::pin(revoke(tx, Some(account), id, by))
        })
        .await
    }

    /// The tokens of an account that are neither expired nor revoked at `at`, oldest first.
    pub async fn active_tokens(
        &self,
        account: AccountId,
        at: Timestamp,
    ) -> Result<Vec<Credential>, StoreError> {
        let statement = select(
            "account_id = $1 AND kind = $2 AND revoked_at IS NULL AND \
             (expires_at IS NULL OR expires_at > $3) ORDER BY id",
        );
        let values = values![account, TOKEN, at];
        self.read("active_tokens", ReadPath::Point, statement, values, credential).await
    }

    /// The credentials of an account, oldest first, including expired and revoked ones.
    pub async fn credentials(&self, account: AccountId) -> Result<Vec<Credential>, StoreError> {
        let statement = select("account_id = $1 ORDER BY id");
        self.read("credentials", ReadPath::Point, statement, values![account], credential).await
    }

    /// The credential with this secret, even if it is expired or revoked.
    pub async fn credential(
        &self,
        kind: CredentialKind,
        hash: SecretHash,
    ) -> Result<Option<Credential>, StoreError> {
        let statement = select("kind = $1 AND hash = $2");
        let values = values![kind.as_str(), hash];
        self.read_one("credential", ReadPath::Point, statement, values, credential).await
    }

    /// Records when credentials were last used. An earlier time than the recorded one changes
    /// nothing, and neither does a credential that does not exist.
    pub async fn record_credential_use(
        &self,
        uses: Vec<(CredentialId, Timestamp)>,
    ) -> Result<(), StoreError> {
        self.write("record_credential_use", uses, |uses, tx| Box::pin(record_use(tx, uses))).await
    }

    /// A number that increases with every change that invalidates cached accounts or credentials.
    pub async fn credential_epoch(&self) -> Result<u64, StoreError> {
        let (method, path) = ("credential_epoch", ReadPath::Point);
        let statement = "SELECT epoch FROM credential_epoch";
        let epoch = self.read_one(method, path, statement, [], |row| row.number("epoch")).await?;
        Ok(epoch.unwrap_or_default())
    }
}

const TOKEN: &str = CredentialKind::Token.as_str();

fn select(condition: &str) -> String {
    format!("SELECT {COLUMNS} FROM credential WHERE {condition}")
}

fn owner_values(account: AccountId, at: Timestamp) -> [Value<'static>; 4] {
    values![account, TOKEN, at, issued_since(at)]
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

/// Adds a token if its author still may. A refusal waits for no sync.
async fn issue(
    tx: &mut Tx<'_>,
    account: AccountId,
    new: &NewCredential,
    by: Author,
) -> Result<IssueTokenOutcome, StoreError> {
    tx.lock_credentials().await?;
    let owner = tx.query_one(&select_owner(), &owner_values(account, by.at), token_owner).await?;
    let caller = match by.actor {
        Actor::Token(id) => by_id(tx, id).await?,
        Actor::Operator | Actor::Service => None,
    };
    let refusal = match issue_refusal(owner.as_ref(), caller.as_ref(), new, by) {
        Some(refusal) => refusal,
        None => match add(tx, account, new, by).await? {
            AddCredentialOutcome::Added(id) => return Ok(IssueTokenOutcome::Issued(id)),
            AddCredentialOutcome::SecretTaken => IssueTokenOutcome::SecretTaken,
            AddCredentialOutcome::NotFound => IssueTokenOutcome::NotFound,
        },
    };
    Ok(tx.refuse(refusal))
}

async fn rotate(
    tx: &mut Tx<'_>,
    old: CredentialId,
    new: &NewCredential,
    old_ends_at: Timestamp,
    by: Author,
) -> Result<RotateCredentialOutcome, StoreError> {
    tx.lock_credentials().await?;
    let found = by_id(tx, old).await?;
    let RotationPlan { account, replacement, old_ends_at } =
        match plan_rotation(found.as_ref(), new, old_ends_at, by.at) {
            Ok(plan) => plan,
            Err(refused) => return Ok(refused),
        };
    let id = match insert(tx, account, &replacement, by.at).await? {
        AddCredentialOutcome::Added(id) => id,
        AddCredentialOutcome::SecretTaken => return Ok(RotateCredentialOutcome::SecretTaken),
        AddCredentialOutcome::NotFound => return Ok(RotateCredentialOutcome::NotFound),
    };
    let expire = "UPDATE credential SET expires_at = $2 WHERE id = $1";
    tx.defer(expire, &values![old.0, old_ends_at])?;
    tx.audit(account, AuditedChange::credential_rotated(old, id, &replacement, old_ends_at), by)?;
    tx.credentials_changed().await?;
    Ok(RotateCredentialOutcome::Rotated { id, expires_at: replacement.expires_at, old_ends_at })
}

/// Revokes a credential, or a token of this account.
async fn revoke(
    tx: &mut Tx<'_>,
    account: Option<AccountId>,
    id: CredentialId,
    by: Author,
) -> Result<RevokeTokenOutcome, StoreError> {
    tx.lock_credentials().await?;
    let found = match revocable(account, by_id(tx, id).await?) {
        Ok(found) => found,
        Err(refusal) => return Ok(tx.refuse(refusal)),
    };
    tx.defer("UPDATE credential SET revoked_at = $2 WHERE id = $1", &values![id.0, by.at])?;
    tx.audit(found.account, AuditedChange::credential_revoked(&found), by)?;
    tx.credentials_changed().await?;
    Ok(RevokeTokenOutcome::Revoked)
}

async fn record_use(tx: &mut Tx<'_>, uses: &[(CredentialId, Timestamp)]) -> Result<(), StoreError> {
    // Two instances never wait for each other in a circle, because each locks the credentials.
    tx.lock_credentials().await?;
    let uses: Vec<_> = uses.iter().map(|(id, at)| (id.0, millis(*at))).collect();
    let pairs = tx.dialect().either("json_each($1)", "json_array_elements($1::text::json)");
    // Another instance may have recorded a use of the same minute.
    let update = format!(
        "UPDATE credential SET last_used_at = used.at FROM (SELECT CAST(value ->> 0 AS BIGINT) AS id, \
         CAST(value ->> 1 AS BIGINT) AS at FROM {pairs}) AS used WHERE credential.id = used.id \
         AND coalesce(credential.last_used_at, 0) < used.at"
    );
    tx.execute(&update, &values![json!(uses).to_string()]).await.map(drop)
}
