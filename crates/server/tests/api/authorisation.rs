//! Who may call what, as a matrix: every operation of the API description that asks for
//! credentials, against everybody who has not the right ones. A new operation gets its rows from
//! its description.

use std::{collections::BTreeSet, time::Duration};

use axum::http::Method;
use galley_domain::{
    account::{Scope, Scopes},
    id::{AccountId, TemplateId},
};
use galley_server::{Clock as _, openapi};
use galley_store::{AddCredentialOutcome, CredentialKind, Feed, NewCredential, Webhook};
use serde_json::{Value, json};

use super::{
    app::{Answer, KEY, PHONE, TestApp, credential, request},
    described::{self, Example, Operation, operations},
};

/// Operations that anybody may call.
const PUBLIC: [&str; 8] =
    ["alive", "docs", "docsFile", "media", "metrics", "openApiDocument", "problemPage", "ready"];

/// A phone number, a key and a token.
type Caller = (&'static str, &'static str, &'static str);

/// The owner of the template and the endpoint, with the one scope that the operation names.
const OWNER: Caller = (PHONE, KEY, "good");

/// Somebody else with good credentials of their own.
const STRANGER: Caller = ("222", "strangers-key", "strangers-token");

/// Everybody who is refused for credentials, and how.
const REFUSED: [(Caller, u16, &str); 12] = [
    ((PHONE, KEY, ""), 401, "token-missing"),
    ((PHONE, "unknown", ""), 401, "token-missing"),
    ((PHONE, KEY, "unknown"), 401, "token-unknown"),
    ((PHONE, KEY, "expired"), 401, "token-expired"),
    ((PHONE, KEY, "revoked"), 401, "token-revoked"),
    ((PHONE, "unknown", "good"), 401, "key-unknown"),
    ((PHONE, "expired", "good"), 401, "key-expired"),
    ((PHONE, "revoked", "good"), 401, "key-revoked"),
    ((PHONE, KEY, STRANGER.2), 403, "credentials-mismatch"),
    ((PHONE, STRANGER.1, "good"), 403, "credentials-mismatch"),
    ((STRANGER.0, KEY, "good"), 404, "phone-unknown"),
    ((PHONE, KEY, "without-the-scope"), 403, "scope-missing"),
];

#[tokio::test]
async fn every_operation_is_for_those_alone_whom_it_names() {
    let document = openapi::document();
    for operation in operations(&document).filter(|it| !is_graph(it) && scope(it).is_some()) {
        let mut tried = Vec::new();
        let mut succeeded = false;
        for example in operation.examples() {
            let stage = Stage::set(&operation, &example).await;
            stage.refuses_everybody_else().await;
            // The very request that was refused so often has to be a good one.
            let answer = stage.call(OWNER).await;
            succeeded = answer.status == operation.success();
            tried.push(format!("{} was answered {}", example.name, answer.text));
            if succeeded {
                break;
            }
        }
        let (place, success) = (operation.name(), operation.success());
        let tried = tried.join("\n");
        assert!(
            succeeded,
            "{place}: no example of it is answered {success} to its owner:\n{tried}"
        );
    }
}

#[test]
fn the_operations_without_credentials_are_these() {
    let document = openapi::document();
    let public = operations(&document).filter(|it| scope(it).is_none());
    let public: BTreeSet<String> = public.map(|it| it.id().to_owned()).collect();
    assert_eq!(public, PUBLIC.map(str::to_owned).into());
}

/// Operations of the surface for clients of the Graph API: one token and no key, and a matrix of
/// their own (`tests/graph/callers.rs`).
fn is_graph(operation: &Operation<'_>) -> bool {
    operation.pattern.starts_with("/{version}/")
}

/// The scope that an operation asks for.
fn scope(operation: &Operation<'_>) -> Option<Scope> {
    let word = operation.description.pointer("/security/0/accessToken/0")?.as_str()?;
    Some(Scope::ALL.into_iter().find(|scope| scope.as_str() == word).unwrap())
}

/// A service in which everybody is there, the owner with a template and an endpoint, and a call
/// that is tried.
struct Stage<'o> {
    app: TestApp,
    operation: &'o Operation<'o>,
    body: Option<Value>,
    template: Value,
    /// The template's.
    id: String,
    /// The endpoint's.
    webhook: String,
    owner: AccountId,
    stranger: AccountId,
}

/// All that a call could change.
#[derive(Debug, PartialEq)]
struct Snapshot {
    template: Value,
    events: [Feed; 2],
    /// The owner's alone: a stranger may well register his own.
    webhooks: Vec<Webhook>,
}

impl<'o> Stage<'o> {
    async fn set(operation: &'o Operation<'o>, example: &Example) -> Self {
        let app = TestApp::start().await;
        let (phone, key, token) = STRANGER;
        app.account("stranger", &[phone], key, token).await;
        let accounts = app.store.accounts().await.unwrap();
        let (owner, stranger) = (accounts[0].id, accounts[1].id);
        add_credentials(&app, owner, scope(operation).unwrap()).await;
        let template = described::template(operation.document, &example.name, "the owner's own");
        let created = app.create(&template).await;
        assert_eq!(created.status, 201, "{created:?}");
        let id = created.json()["id"].as_str().unwrap().to_owned();
        while app.store.update_search_index().await.unwrap().more {}
        let endpoint = json!({"url": "https://shop.example/hooks"});
        let registered = app.base(Method::POST, "/webhooks", &endpoint).await;
        assert_eq!(registered.status, 201, "{registered:?}");
        let webhook = registered.json()["id"].as_str().unwrap().to_owned();
        let body = example.body.clone();
        Self { app, operation, body, template, id, webhook, owner, stranger }
    }

    async fn refuses_everybody_else(&self) {
        let before = self.snapshot().await;
        let place = self.operation.name();
        for (caller, status, slug) in REFUSED {
            let answer = self.refuses(caller, status, slug).await;
            assert!(!answer.text.contains(&self.id), "{place} {slug}: {answer:?}");
            assert_eq!(self.snapshot().await, before, "{place} {slug}");
        }
        self.tells_a_stranger_nothing().await;
        assert_eq!(self.snapshot().await, before, "{place} as a stranger");

        self.set_disabled(true).await;
        self.refuses(OWNER, 403, "account-disabled").await;
        self.set_disabled(false).await;
        assert_eq!(self.snapshot().await, before, "{place} of a disabled account");
    }

    async fn refuses(&self, caller: Caller, status: u16, slug: &str) -> Answer {
        let answer = self.call(caller).await;
        let expected = answer.status == status && answer.text.contains(&format!("/{slug}\""));
        let place = self.operation.name();
        assert!(expected, "{place} as {caller:?} is to be {status} {slug}: {answer:?}");
        answer.problem(status, slug);
        answer
    }

    /// Another account finds nothing under the id; what it may ask tells nothing of it.
    async fn tells_a_stranger_nothing(&self) {
        if self.operation.pattern.contains("{id}") {
            let slug =
                if self.is_about_an_endpoint() { "webhook-unknown" } else { "template-unknown" };
            self.refuses(STRANGER, 404, slug).await;
            return;
        }
        let mut body = self.body.clone();
        if let Some(name) = body.as_mut().and_then(|body| body.get_mut("name")) {
            *name = self.template["name"].clone();
        }
        for query in self.queries() {
            let answer = self.send(STRANGER, &query, body.as_ref()).await;
            assert!(![401, 403].contains(&answer.status.as_u16()), "{answer:?}");
            let told = [&self.id, PHONE].into_iter().find(|it| answer.text.contains(*it));
            assert_eq!(told, None, "{} {query}: {answer:?}", self.operation.name());
            let items = answer.json()["data"].as_array().map_or(0, Vec::len);
            assert_eq!(items, 0, "{} {query}: {answer:?}", self.operation.name());
        }
    }

    /// No query, and each that asks for what the owner's template is.
    fn queries(&self) -> Vec<String> {
        let parameters = self.operation.description["parameters"].as_array().unwrap().iter();
        let asks = parameters.filter_map(|parameter| {
            let parameter = described::resolved(self.operation.document, parameter);
            let name = parameter["name"].as_str().unwrap();
            let value =
                if name == "q" { &self.template["name"] } else { self.template.get(name)? };
            let value = value.as_str()?.replace(' ', "+");
            (parameter["in"] == "query").then(|| format!("?{name}={value}"))
        });
        [String::new()].into_iter().chain(asks).collect()
    }

    fn is_about_an_endpoint(&self) -> bool {
        self.operation.pattern.contains("/webhooks/")
    }

    async fn call(&self, caller: Caller) -> Answer {
        self.send(caller, "", self.body.as_ref()).await
    }

    async fn send(&self, caller: Caller, query: &str, body: Option<&Value>) -> Answer {
        let (phone, key, token) = caller;
        let id = if self.is_about_an_endpoint() { &self.webhook } else { &self.id };
        let known = [("phone_number_id", phone), ("key", key), ("id", id)];
        let path = format!("{}{query}", self.operation.path(&known));
        let body = body.map(Value::to_string).unwrap_or_default();
        self.app.send(request(self.operation.method.clone(), &path, token, body)).await
    }

    async fn snapshot(&self) -> Snapshot {
        let store = &self.app.store;
        let kept =
            store.template(self.owner, self.id.parse::<TemplateId>().unwrap()).await.unwrap();
        assert!(kept.is_some(), "{} took the template away", self.operation.name());
        Snapshot {
            template: self.app.show(&self.id).await.json(),
            events: [
                store.events(self.owner, None, 1_000).await.unwrap(),
                store.events(self.stranger, None, 1_000).await.unwrap(),
            ],
            webhooks: store.webhooks(self.owner).await.unwrap(),
        }
    }

    async fn set_disabled(&self, disabled: bool) {
        let at = disabled.then(|| self.app.clock.now());
        assert!(self.app.store.set_account_disabled(self.owner, at).await.unwrap());
        // What is remembered of credentials is forgotten by then.
        self.app.clock.advance(Duration::from_secs(2));
    }
}

async fn add_credentials(app: &TestApp, owner: AccountId, scope: Scope) {
    use CredentialKind::{Key, Token};
    let now = app.clock.now();
    let scoped = |secret, wanted: &dyn Fn(Scope) -> bool| {
        let words: Vec<&str> =
            Scope::ALL.into_iter().filter(|it| wanted(*it)).map(Scope::as_str).collect();
        NewCredential {
            scopes: Scopes::parse(&words.join(",")).unwrap(),
            ..credential(Token, secret)
        }
    };
    let mut added =
        vec![scoped("good", &|it| it == scope), scoped("without-the-scope", &|it| it != scope)];
    for kind in [Key, Token] {
        added.push(NewCredential { expires_at: Some(now), ..credential(kind, "expired") });
        added.push(credential(kind, "revoked"));
    }
    for new in added {
        let revoked = new.hash == credential(new.kind, "revoked").hash;
        match app.store.add_credential(owner, new, now).await.unwrap() {
            AddCredentialOutcome::Added(id) if revoked => {
                assert!(app.store.revoke_credential(id, now).await.unwrap());
            }
            AddCredentialOutcome::Added(_) => {}
            other => panic!("{other:?}"),
        }
    }
}
