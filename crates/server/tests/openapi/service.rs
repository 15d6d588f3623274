//! A client of every described operation: a service with six accounts, with automatic review, with
//! manual review, with the rulebook `whatsapp`, an emulator, and two that are connected to a provider.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::{
    body::Body,
    extract::Request,
    http::{Method, header},
    response::Response,
};
use galley_domain::{account::Scopes, id::AccountId, rulebook::WHATSAPP, template::Review};
use galley_server::delivery::{Secret, sign_meta};
use serde_json::{Value, json};

use crate::harness::{
    TestAccount, TestService,
    description::{self, Example, Operation},
    json_of,
};

/// An account, identified by its API key, which is also its token and its phone number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account(&'static str);

pub(crate) const AUTO_REVIEW: Account = Account("1111");
pub(crate) const MANUAL_REVIEW: Account = Account("2222");

/// The account with the rulebook `whatsapp`.
pub(crate) const SHOP: Account = Account("3333");

/// The emulator account.
const EMULATOR: Account = Account("4444");

/// The account whose templates and operations at a provider are read and changed.
const CONNECTED: Account = Account("5555");

/// The account that gets webhooks of a provider, and their secrets.
const HOOKED: Account = Account("6666");
const HOOK_TOKEN: &str = "gh_example-of-a-path";
const APP_SECRET: &str = "0123456789abcdef0123456789abcdef";

/// Operations that only emulator accounts have.
const OF_EMULATORS: [&str; 2] = ["graphSendMessage", "graphCompareTemplates"];

pub(crate) struct Service {
    inner: TestService,
    shop: AccountId,
    emulator: AccountId,
    connected: AccountId,
    templates: AtomicU64,
}

impl Account {
    /// The account with the rulebook `v1` and automatic review.
    fn details(&self) -> TestAccount<'_> {
        let own = self.0;
        let phones = std::slice::from_ref(&self.0);
        let scopes = Scopes::ALL;
        TestAccount { phones, key: own, token: own, scopes, ..TestAccount::named(own) }
    }
}

impl Service {
    pub(crate) async fn start() -> Self {
        let service = TestService::builder().public_url("http://galley.test").start();
        service.account(AUTO_REVIEW.details()).await;
        let manual = TestAccount { review: Review::Manual, ..MANUAL_REVIEW.details() };
        service.account(manual).await;
        let shop = TestAccount { rulebook: &WHATSAPP, ..SHOP.details() };
        let shop = service.account(shop).await;
        let emulator = service.account(EMULATOR.details().into_emulator()).await;
        let connected = TestAccount { rulebook: &WHATSAPP, ..CONNECTED.details() };
        let connected = service.account(connected).await;
        let hooked = TestAccount { rulebook: &WHATSAPP, ..HOOKED.details() };
        let hooked = service.account(hooked).await;
        service.connect_with_hook(hooked, HOOK_TOKEN, Some(APP_SECRET)).await;
        Self { inner: service, shop, emulator, connected, templates: AtomicU64::new(0) }
    }

    /// Sends a request as an account, with an optional header.
    pub(crate) async fn send(
        &self,
        Account(token): Account,
        method: &Method,
        path: &str,
        body: Option<&Value>,
        header: Option<(&str, &str)>,
    ) -> Response {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {token}"));
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let body = body.map_or(Body::empty(), |body| Body::from(body.to_string()));
        self.inner.handle(request.body(body).unwrap()).await
    }

    /// Reads a public path.
    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send(AUTO_REVIEW, &Method::GET, path, None, None).await
    }

    /// Calls an operation as in the example, on a new template or endpoint.
    pub(crate) async fn call(
        &self,
        account: Account,
        operation: &Operation<'_>,
        example: &Example,
    ) -> Response {
        let is_for_whatsapp = description::is_for_whatsapp(&example.name);
        let account = match operation.id() {
            _ if is_of_emulator(operation) => EMULATOR,
            _ if is_of_connection(operation) => CONNECTED,
            _ if is_graph(operation) || is_for_whatsapp => SHOP,
            _ => account,
        };
        if operation.id() == "graphSendUpload" {
            return self.send_sample().await;
        }
        let path = self.path(account, operation, &example.name).await;
        let signature = match &example.body {
            Some(body) if operation.id() == "receiveProviderHook" => sign_meta(
                &Secret::from_app_secret(APP_SECRET).unwrap(),
                body.to_string().as_bytes(),
            ),
            _ => String::new(),
        };
        let signature = Some(("x-hub-signature-256", &*signature)).filter(|it| !it.1.is_empty());
        self.send(account, &operation.method, &path, example.body.as_ref(), signature).await
    }

    /// The path of an operation on a new template or endpoint that fits the example.
    pub(crate) async fn path(
        &self,
        account: Account,
        operation: &Operation<'_>,
        example: &str,
    ) -> String {
        if is_graph(operation) {
            return self.graph_path(operation).await;
        }
        if operation.id() == "showMedia" {
            return self.sample().await;
        }
        let account = match () {
            () if is_of_emulator(operation) => EMULATOR,
            () if is_of_connection(operation) => CONNECTED,
            () => account,
        };
        let Account(own) = account;
        let mut known = vec![("key", own), ("phone_number_id", own)];
        let id;
        if is_of_connection(operation) {
            self.inner.disconnect(self.connected).await;
            id = self.template(account, example).await;
            let template = id.parse().unwrap();
            self.inner.connect_for(operation.id(), self.connected, template).await;
            known.push(("id", &id));
        } else if operation.pattern.contains("{id}") {
            // The template also creates an event, which a replay needs.
            let template = self.template(account, example).await;
            id = if operation.pattern.contains("/webhooks/") {
                self.webhook(account).await
            } else if operation.pattern.contains("/tokens/") {
                self.token(account).await
            } else if operation.pattern.contains("/faults/") {
                self.fault().await
            } else {
                template
            };
            known.push(("id", &id));
        }
        operation.path(&known)
    }

    /// The path of an operation of the Graph surface, on a new template.
    async fn graph_path(&self, operation: &Operation<'_>) -> String {
        if OF_EMULATORS.contains(&operation.id()) {
            return self.emulator_path(operation).await;
        }
        let shop = self.shop.to_string();
        let list = format!("/v23.0/{shop}/message_templates");
        let name = format!("template_{}", self.templates.fetch_add(1, Ordering::Relaxed));
        let document = json!({
            "name": name, "language": "en_US", "category": "UTILITY",
            "components": [{"type": "BODY", "text": "Good morning"}],
        });
        let created =
            json_of(self.send(SHOP, &Method::POST, &list, Some(&document), None).await).await;
        let id = created["id"].as_str().unwrap();
        if operation.id() == "graphUnpauseTemplate" {
            let review = format!("/api/v1.0/{0}/{0}/message_templates/{id}/review", SHOP.0);
            let pause = json!({"decision": "pause"});
            self.send(SHOP, &Method::POST, &review, Some(&pause), None).await;
        }
        if operation.pattern.contains("{upload}") {
            let upload = self.begin_upload().await;
            let upload = upload.strip_prefix("upload:").unwrap();
            return operation.path(&[("upload", upload)]);
        }
        let known = [("account_id", &*shop), ("node", id), ("template_id", id), ("id", id)];
        let path = operation.path(&known);
        // No parameter is required, but the call needs at least one.
        if operation.id() == "graphDeleteTemplates" { format!("{path}?name={name}") } else { path }
    }

    /// The path of an operation of the emulator account, which has the template of the examples.
    async fn emulator_path(&self, operation: &Operation<'_>) -> String {
        let list = format!("/v23.0/{}/message_templates", self.emulator);
        let document = json!({
            "name": "order_shipped", "language": "en_US", "category": "UTILITY",
            "components": [{
                "type": "BODY", "text": "Hi {{1}}, your order is on its way to you.",
                "example": {"body_text": [["Ada"]]},
            }],
        });
        // The faults of other examples strike these calls, too.
        let faults = format!("/api/v1.0/{0}/{0}/emulator/faults", EMULATOR.0);
        self.send(EMULATOR, &Method::DELETE, &faults, None, None).await;
        // Later calls find the template.
        self.send(EMULATOR, &Method::POST, &list, Some(&document), None).await;
        let found = json_of(self.send(EMULATOR, &Method::GET, &list, None, None).await).await;
        let id = found["data"][0]["id"].as_str().unwrap();
        let known = [("phone_number_id", EMULATOR.0), ("template_id", id), ("template_ids", id)];
        operation.path(&known)
    }

    /// Starts an upload and returns its id.
    async fn begin_upload(&self) -> String {
        let path = "/v23.0/app/uploads?file_length=8&file_type=image/png";
        let begun = json_of(self.send(SHOP, &Method::POST, path, None, None).await).await;
        begun["id"].as_str().unwrap().to_owned()
    }

    /// Sends all bytes of a sample.
    async fn send_sample(&self) -> Response {
        let upload = format!("/v23.0/{}", self.begin_upload().await);
        let request = Request::builder().method(Method::POST).uri(upload);
        let request = request.header(header::AUTHORIZATION, format!("Bearer {}", SHOP.0));
        let picture = Body::from(&b"\x89PNG\r\n\x1a\n"[..]);
        self.inner.handle(request.body(picture).unwrap()).await
    }

    /// Uploads a sample and returns its path.
    async fn sample(&self) -> String {
        let handle = json_of(self.send_sample().await).await["h"].as_str().unwrap().to_owned();
        format!("/media/{}", handle.strip_prefix("4::galley.").unwrap())
    }

    /// Creates a template and returns its id.
    async fn template(&self, account: Account, example: &str) -> String {
        let name = format!("template_{}", self.templates.fetch_add(1, Ordering::Relaxed));
        let template = description::template(example, &name);
        let path = if description::is_for_whatsapp(example) {
            format!("/v23.0/{}/message_templates", self.shop)
        } else {
            below(account, "message_templates")
        };
        self.created(account, &path, &template).await
    }

    /// Registers an endpoint and returns its id.
    async fn webhook(&self, account: Account) -> String {
        let document = json!({"url": "https://shop.example/hooks"});
        self.created(account, &below(account, "webhooks"), &document).await
    }

    /// Creates a token and returns its id.
    async fn token(&self, account: Account) -> String {
        let document = json!({"name": "spare", "scopes": ["read"]});
        self.created(account, &below(account, "tokens"), &document).await
    }

    /// Adds a fault to the emulator and returns its id.
    async fn fault(&self) -> String {
        let document = json!({"call": "upload", "kind": "error", "times": 1});
        self.created(EMULATOR, &below(EMULATOR, "emulator/faults"), &document).await
    }

    async fn created(&self, account: Account, path: &str, document: &Value) -> String {
        let response = self.send(account, &Method::POST, path, Some(document), None).await;
        json_of(response).await["id"].as_str().unwrap().to_owned()
    }
}

/// The path of a collection of an account.
fn below(Account(own): Account, collection: &str) -> String {
    format!("/api/v1.0/{own}/{own}/{collection}")
}

fn is_of_emulator(operation: &Operation<'_>) -> bool {
    operation.pattern.contains("/emulator/") || OF_EMULATORS.contains(&operation.id())
}

fn is_of_connection(operation: &Operation<'_>) -> bool {
    operation.pattern.contains("{key}/") && operation.pattern.contains("/upstream")
}

fn is_graph(operation: &Operation<'_>) -> bool {
    operation.pattern.starts_with("/{version}/")
}
