//! Authorisation as a matrix: every operation of API v1.0 that requires credentials, called with every
//! kind of wrong credentials. A new operation gets its rows from the OpenAPI document. The Graph surface
//! has a separate matrix (`tests/graph/callers.rs`).

use std::{collections::BTreeSet, time::Duration};

use axum::http::Method;
use galley_domain::{
    account::{Scope, Scopes},
    emulator::{clock::Clock, rules::ReviewRules},
    id::{AccountId, TemplateId},
    rulebook::WHATSAPP,
};
use galley_server::Clock as _;
use galley_store::{
    AddCredentialOutcome, Author, Credential, CredentialKind, Feed, NewCredential, StoredFault,
    StoredOperation, Webhook,
};
use serde_json::{Value, json};

use super::app::{KEY, PHONE, TestApp, credential, request};
use crate::harness::{
    TestAccount, TestResponse, TestService,
    description::{self, Example, Operation, V1, all_operations, operations},
};

/// Operations without authentication.
const PUBLIC: [&str; 14] = [
    // The signature of the app is their credential.
    "confirmProviderHook",
    "receiveProviderHook",
    "listProblems",
    "showDocs",
    "showDocsFile",
    "showGraphDocument",
    "showHealth",
    "showIndex",
    "showMedia",
    "showMetrics",
    "showOpenApiDocument",
    "showProblem",
    "showReadiness",
    "showTemplateSchema",
];

/// Lists that are not empty for any account: each has tokens, and entries about them.
const OF_EVERY_ACCOUNT: [&str; 2] = ["listTokens", "listAuditEntries"];

/// A phone number, a key and a token.
type Caller = (&'static str, &'static str, &'static str);

/// The owner of the template and the endpoint, whose token has only the required scope.
const OWNER: Caller = (PHONE, KEY, "valid");

/// Another account with valid credentials.
const STRANGER: Caller = ("222", "strangers-key", "strangers-token");

/// Wrong credentials, with the expected status and problem.
const REJECTED: [(Caller, u16, &str); 13] = [
    ((PHONE, KEY, ""), 401, "token-missing"),
    ((PHONE, "unknown", ""), 401, "token-missing"),
    ((PHONE, KEY, "unknown"), 401, "token-unknown"),
    ((PHONE, KEY, "expired"), 401, "token-expired"),
    ((PHONE, KEY, "revoked"), 401, "token-revoked"),
    ((PHONE, "unknown", "valid"), 401, "key-unknown"),
    ((PHONE, "expired", "valid"), 401, "key-expired"),
    ((PHONE, "revoked", "valid"), 401, "key-revoked"),
    ((PHONE, KEY, STRANGER.2), 403, "credentials-mismatch"),
    ((PHONE, STRANGER.1, "valid"), 403, "credentials-mismatch"),
    ((STRANGER.0, KEY, "valid"), 404, "phone-unknown"),
    ((PHONE, KEY, "without-the-scope"), 403, "scope-missing"),
    // Otherwise such a token could find out which phone numbers exist.
    ((STRANGER.0, KEY, "without-the-scope"), 403, "scope-missing"),
];

#[tokio::test]
async fn every_operation_rejects_callers_without_the_right_credentials() {
    for operation in operations(&V1).filter(|it| scope(it).is_some()) {
        let mut tried = Vec::new();
        let mut succeeded = false;
        for example in operation.examples() {
            if description::is_for_whatsapp(&example.name) {
                continue;
            }
            let scenario = Scenario::new(&operation, &example).await;
            scenario.assert_rejects_other_callers().await;
            // The same request must succeed with the right credentials.
            let response = scenario.call(OWNER).await;
            succeeded = response.status == operation.success();
            tried.push(format!("{}: {}", example.name, response.text()));
            if succeeded {
                break;
            }
        }
        let (place, success) = (operation.name(), operation.success());
        let tried = tried.join("\n");
        assert!(succeeded, "{place}: no example returns {success} to its owner:\n{tried}");
    }
}

#[tokio::test]
async fn every_operation_of_the_emulator_is_hidden_from_other_accounts() {
    let app = TestApp::start().await;
    let account = app.store.accounts().await.unwrap()[0].id;
    add_credentials(&app, account, Scope::Emulator).await;
    let (phone, key, _) = OWNER;
    let known = [("phone_number_id", phone), ("key", key), ("id", "1")];
    let mut count = 0;
    for operation in operations(&V1).filter(|it| scope(it) == Some(Scope::Emulator)) {
        count += 1;
        for (token, status, slug) in
            [("valid", 404, "not-an-emulator"), ("without-the-scope", 403, "scope-missing")]
        {
            let body = operation.examples()[0].body.as_ref().map(Value::to_string);
            let path = operation.path(&known);
            let request = request(operation.method.clone(), &path, token, body.unwrap_or_default());
            app.send(request).await.problem(status, slug);
        }
    }
    assert_eq!(count, 9);
}

#[tokio::test]
async fn every_operation_of_a_connection_is_hidden_from_accounts_without_one() {
    let app = TestApp::start_whatsapp().await;
    let account = app.store.accounts().await.unwrap()[0].id;
    add_credentials(&app, account, Scope::Upstream).await;
    let created = app.create(&description::template("", "hello")).await.json();
    let id = created["id"].as_str().unwrap();
    let (phone, key, _) = OWNER;
    let known = [("phone_number_id", phone), ("key", key), ("id", id)];
    let mut count = 0;
    for operation in operations(&V1).filter(|it| scope(it) == Some(Scope::Upstream)) {
        count += 1;
        for (token, status, slug) in
            [("valid", 404, "not-connected"), ("without-the-scope", 403, "scope-missing")]
        {
            let request = request(operation.method.clone(), &operation.path(&known), token, "");
            app.send(request).await.problem(status, slug);
        }
    }
    assert_eq!(count, 8);
}

#[test]
fn only_the_listed_operations_need_no_credentials() {
    let public = all_operations().filter(|it| scope(it).is_none());
    let public: BTreeSet<String> = public.map(|it| it.id().to_owned()).collect();
    assert_eq!(public, PUBLIC.map(str::to_owned).into());
}

/// The scope that an operation requires.
fn scope(operation: &Operation<'_>) -> Option<Scope> {
    let name = operation.description.pointer("/security/0/accessToken/0")?.as_str()?;
    Some(Scope::ALL.into_iter().find(|scope| scope.as_str() == name).unwrap())
}

/// A service with all callers, a template and an endpoint of the owner, and a call to try.
struct Scenario<'o> {
    app: TestApp,
    operation: &'o Operation<'o>,
    body: Option<Value>,
    template: Value,
    /// The id of the template.
    id: String,
    /// The id of the endpoint.
    webhook: String,
    /// The id of a token.
    token: String,
    owner: AccountId,
    stranger: AccountId,
}

/// Everything that a call could change.
#[derive(Debug, PartialEq)]
struct Snapshot {
    template: Value,
    events: [Feed; 2],
    /// Only those of the owner, because the other account may register its own.
    webhooks: Vec<Webhook>,
    /// The credentials of the owner.
    credentials: Vec<Credential>,
    /// The clock, the rules and the faults of the owner, if it is an emulator.
    emulator: (Option<Clock>, ReviewRules, Vec<StoredFault>),
    /// The operations of the owner at its provider.
    upstream: Vec<StoredOperation>,
}

impl<'o> Scenario<'o> {
    async fn new(operation: &'o Operation<'o>, example: &Example) -> Self {
        let is_emulator = scope(operation) == Some(Scope::Emulator);
        let is_connected = scope(operation) == Some(Scope::Upstream);
        let app = if is_emulator {
            TestApp::start_emulator().await
        } else if is_connected {
            TestApp::start_whatsapp().await
        } else {
            TestApp::start().await
        };
        let (phone, key, token) = STRANGER;
        let scopes = Scopes::ALL;
        let stranger = TestAccount::named("stranger");
        let stranger = TestAccount { phones: &[phone], key, token, scopes, ..stranger };
        let stranger = if is_emulator { stranger.into_emulator() } else { stranger };
        let rulebook = if is_connected { &WHATSAPP } else { stranger.rulebook };
        let stranger = TestAccount { rulebook, ..stranger };
        TestService::account(&app, stranger).await;
        let accounts = app.store.accounts().await.unwrap();
        let (owner, stranger) = (accounts[0].id, accounts[1].id);
        add_credentials(&app, owner, scope(operation).unwrap()).await;
        let token = app.store.credentials(owner).await.unwrap().pop().unwrap().id.to_string();
        // The rulebook `whatsapp` allows fewer characters in a name.
        let is_whatsapp = is_emulator || is_connected;
        let name = if is_whatsapp { "the_owners_own" } else { "the owner's own" };
        let template = description::template(&example.name, name);
        let created = app.create(&template).await;
        assert_eq!(created.status, 201, "{created:?}");
        let id = created.json()["id"].as_str().unwrap().to_owned();
        while app.store.update_search_index().await.unwrap().has_more {}
        let endpoint = json!({"url": "https://shop.example/hooks"});
        let registered = app.base(Method::POST, "/webhooks", &endpoint).await;
        assert_eq!(registered.status, 201, "{registered:?}");
        let webhook = registered.json()["id"].as_str().unwrap().to_owned();
        if is_emulator {
            let fault = json!({"call": "create", "name": "the_*", "kind": "error", "times": 1});
            let created = app.base(Method::POST, "/emulator/faults", &fault).await;
            assert_eq!(created.status, 201, "{created:?}");
        }
        if is_connected {
            app.connect(stranger).await;
            app.connect_for(operation.id(), owner, id.parse().unwrap()).await;
        }
        let body = example.body.clone();
        Self { app, operation, body, template, id, webhook, token, owner, stranger }
    }

    async fn assert_rejects_other_callers(&self) {
        let before = self.snapshot().await;
        let place = self.operation.name();
        for (caller, status, slug) in REJECTED {
            let response = self.assert_rejected(caller, status, slug).await;
            assert!(!response.text().contains(&self.id), "{place} {slug}: {response:?}");
            assert_eq!(self.snapshot().await, before, "{place} {slug}");
        }
        self.assert_hidden_from_stranger().await;
        assert_eq!(self.snapshot().await, before, "{place} as another account");

        self.set_disabled(true).await;
        self.assert_rejected(OWNER, 403, "account-disabled").await;
        self.set_disabled(false).await;
        assert_eq!(self.snapshot().await, before, "{place} of a disabled account");
    }

    async fn assert_rejected(&self, caller: Caller, status: u16, slug: &str) -> TestResponse {
        let response = self.call(caller).await;
        let expected = response.status == status && response.text().contains(&format!("/{slug}\""));
        let place = self.operation.name();
        assert!(expected, "{place} as {caller:?} must be {status} {slug}: {response:?}");
        response.problem(status, slug);
        response
    }

    /// Asserts that another account cannot see the template, neither by its id nor in lists.
    async fn assert_hidden_from_stranger(&self) {
        if self.operation.pattern.contains("{id}") {
            let slug = match self.collection() {
                "webhooks" => "webhook-unknown",
                "tokens" => "credential-unknown",
                "emulator" => "fault-unknown",
                _ => "template-unknown",
            };
            self.assert_rejected(STRANGER, 404, slug).await;
            return;
        }
        let mut body = self.body.clone();
        if let Some(name) = body.as_mut().and_then(|body| body.get_mut("name")) {
            *name = self.template["name"].clone();
        }
        for query in self.queries() {
            let response = self.send(STRANGER, &query, body.as_ref()).await;
            assert!(![401, 403].contains(&response.status.as_u16()), "{response:?}");
            let leaked = [&self.id, PHONE].into_iter().find(|it| response.text().contains(*it));
            assert_eq!(leaked, None, "{} {query}: {response:?}", self.operation.name());
            if response.bytes.is_empty() {
                continue; // It deleted what the other account has.
            }
            if OF_EVERY_ACCOUNT.contains(&self.operation.id()) {
                continue;
            }
            let items = response.json()["data"].as_array().map_or(0, Vec::len);
            assert_eq!(items, 0, "{} {query}: {response:?}", self.operation.name());
        }
    }

    /// An empty query, and one for each property of the owner's template.
    fn queries(&self) -> Vec<String> {
        let parameters = self.operation.description["parameters"].as_array().unwrap().iter();
        let queries = parameters.filter_map(|parameter| {
            let parameter = description::resolved(self.operation.document, parameter);
            let name = parameter["name"].as_str().unwrap();
            let value =
                if name == "q" { &self.template["name"] } else { self.template.get(name)? };
            let value = value.as_str()?.replace(' ', "+");
            (parameter["in"] == "query").then(|| format!("?{name}={value}"))
        });
        [String::new()].into_iter().chain(queries).collect()
    }

    /// The collection in the path.
    fn collection(&self) -> &str {
        self.operation.pattern.split('/').nth(5).unwrap_or_default()
    }

    async fn call(&self, caller: Caller) -> TestResponse {
        self.send(caller, "", self.body.as_ref()).await
    }

    async fn send(&self, caller: Caller, query: &str, body: Option<&Value>) -> TestResponse {
        let (phone, key, token) = caller;
        let id = match self.collection() {
            "webhooks" => &self.webhook,
            "tokens" => &self.token,
            // The number of the fault.
            "emulator" => "1",
            _ => &self.id,
        };
        let known = [("phone_number_id", phone), ("key", key), ("id", id)];
        let path = format!("{}{query}", self.operation.path(&known));
        let body = body.map(Value::to_string).unwrap_or_default();
        self.app.send(request(self.operation.method.clone(), &path, token, body)).await
    }

    async fn snapshot(&self) -> Snapshot {
        let store = &self.app.store;
        let stored =
            store.template(self.owner, self.id.parse::<TemplateId>().unwrap()).await.unwrap();
        assert!(stored.is_some(), "{} deleted the template", self.operation.name());
        Snapshot {
            template: self.app.show(&self.id).await.json(),
            events: [
                store.events(self.owner, None, 1_000).await.unwrap(),
                store.events(self.stranger, None, 1_000).await.unwrap(),
            ],
            webhooks: store.webhooks(self.owner).await.unwrap(),
            credentials: store.credentials(self.owner).await.unwrap(),
            emulator: (
                store.emulator_clock(self.owner).await.unwrap(),
                store.review_rules(self.owner).await.unwrap(),
                store.faults(self.owner).await.unwrap(),
            ),
            upstream: self.app.operations(self.owner).await,
        }
    }

    async fn set_disabled(&self, disabled: bool) {
        let by = Author::operator(self.app.clock.now());
        assert!(self.app.store.set_account_disabled(self.owner, disabled, by).await.unwrap());
        // The credential cache notices the change within two seconds.
        self.app.clock.advance(Duration::from_secs(2));
    }
}

async fn add_credentials(app: &TestApp, owner: AccountId, scope: Scope) {
    use CredentialKind::{Key, Token};
    let now = app.clock.now();
    let scoped = |secret, wanted: &dyn Fn(Scope) -> bool| {
        let scopes: Vec<&str> =
            Scope::ALL.into_iter().filter(|it| wanted(*it)).map(Scope::as_str).collect();
        NewCredential {
            scopes: Scopes::parse(&scopes.join(",")).unwrap(),
            ..credential(Token, secret)
        }
    };
    let mut added =
        vec![scoped("valid", &|it| it == scope), scoped("without-the-scope", &|it| it != scope)];
    for kind in [Key, Token] {
        added.push(NewCredential { expires_at: Some(now), ..credential(kind, "expired") });
        added.push(credential(kind, "revoked"));
    }
    for new in added {
        let revoked = new.hash == credential(new.kind, "revoked").hash;
        match app.store.add_credential(owner, new, Author::operator(now)).await.unwrap() {
            AddCredentialOutcome::Added(id) if revoked => {
                assert!(app.store.revoke_credential(id, Author::operator(now)).await.unwrap());
            }
            AddCredentialOutcome::Added(_) => {}
            other => panic!("{other:?}"),
        }
    }
}
