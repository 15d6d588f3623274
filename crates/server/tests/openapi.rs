//! The API description is held against the router: what it describes is answered so, and what is
//! answered is described.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Arc,
    time::Duration,
};

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{Method, StatusCode, header},
    response::Response,
};
use galley_domain::{
    credential::Scopes,
    json::Document,
    rulebook::V1,
    template::{Review, Template},
};
use galley_server::{AccessLog, App, Clock, Galley, Limits, openapi};
use galley_store::{
    AccountCreation, CredentialKind, NewAccount, NewCredential, SecretHash, SqliteStore,
    Store as _, sqlite::SqliteOptions,
};
use jiff::Timestamp;
use serde_json::{Value, json};

const KEY: &str = "key-of-the-test";
const TOKEN: &str = "token-of-the-test";

#[tokio::test]
async fn every_operation_is_answered_as_it_is_described() {
    let service = Service::start().await;
    let document = openapi::document();
    for operation in operations(&document) {
        let body = examples(&document, operation.description).into_iter().next();
        let path = service.path_of(&document, &operation).await;
        let response = service.send(&operation.method, &path, body.as_ref()).await;

        let (place, status) = (operation.name(), response.status());
        let described = &operation.description["responses"][status.as_str()];
        assert!(described.is_object(), "{place} answered {status}, which is not described");
        for (name, header) in described["headers"].as_object().unwrap() {
            let required = resolved(&document, header)["required"] == true;
            assert!(!required || response.headers().contains_key(name), "{place} without {name}");
        }
        let content_type = response.headers()[header::CONTENT_TYPE].to_str().unwrap();
        let media_type = content_type.split(';').next().unwrap().to_owned();
        let content = &described["content"][&media_type];
        assert!(content.is_object(), "{place} answered {media_type}, which is not described");

        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let Ok(answer) = serde_json::from_slice::<Value>(&bytes) else { continue };
        let routed = !["/problems/not-found", "/problems/method-not-allowed"]
            .contains(&answer["type"].as_str().unwrap_or_default());
        assert!(routed, "{place} is no route: {answer}");
        if path != "/openapi.json" {
            let known = properties(&document, &content["schema"]);
            for member in answer.as_object().unwrap().keys() {
                assert!(
                    known.contains(member),
                    "{place} answers `{member}`, which nobody describes"
                );
            }
        }
    }
}

#[tokio::test]
async fn every_path_takes_exactly_the_methods_that_are_described() {
    let service = Service::start().await;
    let document = openapi::document();
    let mut described: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for operation in operations(&document) {
        let path = service.path_of(&document, &operation).await;
        described.entry(path).or_default().insert(operation.method.to_string());
    }
    for (path, methods) in described {
        let response = service.send(&Method::from_bytes(b"BREW").unwrap(), &path, None).await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
        let allowed = response.headers()[header::ALLOW].to_str().unwrap().split(',').map(str::trim);
        // Whoever answers GET answers HEAD: HTTP says so, and nobody describes it.
        let allowed: BTreeSet<String> =
            allowed.filter(|method| *method != "HEAD").map(str::to_owned).collect();
        assert_eq!(allowed, methods, "{path}");
    }
}

#[test]
fn every_route_is_described() {
    // A router does not tell its routes, so its source is asked.
    let document = openapi::document();
    let described: BTreeSet<&str> =
        document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    let written = routes_in_the_source();
    assert!(written.contains("/healthz"), "the routes were not found: {written:?}");
    assert_eq!(written.iter().map(String::as_str).collect::<BTreeSet<_>>(), described);
}

#[test]
fn operations_have_distinct_ids_and_say_what_they_do() {
    let document = openapi::document();
    let tags: Vec<&Value> =
        document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    let mut ids = BTreeSet::new();
    for operation in operations(&document) {
        let place = operation.name();
        let id = operation.description["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "{place}: {id} is used twice");
        for text in ["summary", "description"] {
            let text = operation.description[text].as_str().unwrap();
            assert!(!text.is_empty(), "{place}");
        }
        assert!(tags.contains(&&operation.description["tags"][0]), "{place}");
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_component_is_used() {
    let document = openapi::document();
    let mut references = BTreeSet::new();
    collect_references(&document, &mut references);
    for reference in &references {
        assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
    }
    for section in ["schemas", "parameters", "headers", "examples"] {
        for name in document["components"][section].as_object().unwrap().keys() {
            let reference = format!("#/components/{section}/{name}");
            assert!(references.contains(&reference), "{reference} is not used");
        }
    }
}

#[tokio::test]
async fn every_example_of_a_template_is_accepted() {
    let service = Service::start().await;
    let document = openapi::document();
    let create = operations(&document).find(|it| it.id() == "createTemplate").unwrap();
    let examples = examples(&document, create.description);
    assert!(examples.len() >= 4, "the shapes of the specification");
    for example in examples {
        let text = example.to_string();
        Template::read(&Document::parse(text.as_bytes()).unwrap(), &V1).unwrap();
        let path = service.path_of(&document, &create).await;
        let response = service.send(&Method::POST, &path, Some(&example)).await;
        assert_eq!(response.status(), StatusCode::CREATED, "{text}");
    }
}

#[tokio::test]
async fn every_problem_has_a_page() {
    let service = Service::start().await;
    let document = openapi::document();
    let types = &document["components"]["schemas"]["Problem"]["properties"]["type"]["enum"];
    for page in types.as_array().unwrap() {
        let response = service.send(&Method::GET, page.as_str().unwrap(), None).await;
        assert_eq!(response.status(), StatusCode::OK, "{page}");
    }
}

#[tokio::test]
async fn the_served_description_is_the_document() {
    let service = Service::start().await;
    let response = service.send(&Method::GET, "/openapi.json", None).await;
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), openapi::document());
}

/// One operation of the document.
struct Operation<'d> {
    pattern: &'d str,
    method: Method,
    description: &'d Value,
}

impl Operation<'_> {
    fn id(&self) -> &str {
        self.description["operationId"].as_str().unwrap()
    }

    fn name(&self) -> String {
        format!("{} {}", self.method, self.pattern)
    }
}

fn operations(document: &Value) -> impl Iterator<Item = Operation<'_>> {
    document["paths"].as_object().unwrap().iter().flat_map(|(pattern, methods)| {
        methods.as_object().unwrap().iter().map(move |(method, description)| Operation {
            pattern,
            method: method.to_uppercase().parse().unwrap(),
            description,
        })
    })
}

/// The bodies that an operation is shown with.
fn examples(document: &Value, operation: &Value) -> Vec<Value> {
    let examples = &operation["requestBody"]["content"]["application/json"]["examples"];
    let examples = examples.as_object().into_iter().flatten();
    examples.map(|(_, example)| resolved(document, example)["value"].clone()).collect()
}

fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).unwrap(),
        None => value,
    }
}

/// The members that a schema of an object knows.
fn properties(document: &Value, schema: &Value) -> BTreeSet<String> {
    let schema = resolved(document, schema);
    let own = schema["properties"].as_object().into_iter().flat_map(|it| it.keys().cloned());
    let parts = schema["allOf"].as_array().into_iter().flatten();
    own.chain(parts.flat_map(|part| properties(document, part))).collect()
}

fn collect_references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| collect_references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        _ => {}
    }
}

/// The pattern of every `.route(…)` under `src/http`, written there or as a constant of the file.
fn routes_in_the_source() -> BTreeSet<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![source.join("http.rs")];
    let mut folders = vec![source.join("http")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    let mut routes = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for other in [".nest(", ".nest_service(", ".route_service(", ".fallback_service("] {
            assert!(!text.contains(other), "{} adds routes that are not seen here", file.display());
        }
        for call in text.split(".route(").skip(1) {
            let written = call.split([',', ')']).next().unwrap().trim();
            if written.is_empty() {
                continue; // a trace's route is asked for, none is added
            }
            let pattern = match written.strip_prefix('"') {
                Some(literal) => literal.trim_end_matches('"'),
                None => constant(&text, written),
            };
            routes.insert(pattern.to_owned());
        }
    }
    routes
}

fn constant<'t>(text: &'t str, name: &str) -> &'t str {
    let declared = text.split_once(&format!("const {name}: &str =")).map(|(_, rest)| rest);
    declared.and_then(|rest| rest.split('"').nth(1)).unwrap_or_else(|| panic!("{name} is not here"))
}

/// The service with one account.
struct Service {
    galley: Galley,
    _dir: tempfile::TempDir,
}

struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(1_790_000_000_000).unwrap()
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

impl Service {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        let store = SqliteStore::open(&path, &SqliteOptions::default()).unwrap();
        let credential = |kind, secret| NewCredential {
            kind,
            hash: SecretHash::of(secret),
            scopes: Scopes::ALL,
            expires_at: None,
        };
        let account = store.create_account(NewAccount {
            name: "test".to_owned(),
            rulebook: V1.name,
            review: Review::Auto,
            phones: Vec::new(),
            credentials: vec![
                credential(CredentialKind::Key, KEY),
                credential(CredentialKind::Token, TOKEN),
            ],
            only_as_first: true,
            at: Noon.now(),
        });
        assert!(matches!(account.await.unwrap(), AccountCreation::Created(..)));
        let clock = Arc::new(Noon);
        let limits = Limits::default();
        let app = App::new(Arc::new(store), clock, limits, AccessLog::off(), "test".to_owned());
        Self { galley: Galley::new(app), _dir: dir }
    }

    async fn send(&self, method: &Method, path: &str, body: Option<&Value>) -> Response {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
            .header(header::CONTENT_TYPE, "application/json");
        let body = body.map_or(Body::empty(), |body| Body::from(body.to_string()));
        self.galley.answer(request.body(body).unwrap()).await
    }

    /// The path of an operation with its parameters filled in: the account's own key, a template
    /// that nobody else uses, and for the rest what the document shows as examples.
    async fn path_of(&self, document: &Value, operation: &Operation<'_>) -> String {
        let mut path = operation.pattern.to_owned();
        for parameter in operation.description["parameters"].as_array().unwrap() {
            let parameter = resolved(document, parameter);
            let name = parameter["name"].as_str().unwrap();
            let slot = format!("{{{name}}}");
            if !path.contains(&slot) {
                continue;
            }
            let value = match name {
                "key" => KEY.to_owned(),
                "id" => self.template().await,
                _ => parameter["example"].as_str().unwrap().to_owned(),
            };
            path = path.replace(&slot, &value);
        }
        assert!(!path.contains('{'), "{path} has a parameter that is not described");
        path
    }

    /// A new template's id.
    async fn template(&self) -> String {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let body = json!({
            "name": format!("template {}", NUMBER.fetch_add(1, Ordering::Relaxed)),
            "language": "en_US",
            "category": "UTILITY",
            "allow_category_change": true,
            "components": [{"type": "BODY", "text": "Hello"}],
        });
        let path = format!("/api/v1.0/15550001111/{KEY}/message_templates");
        let response = self.send(&Method::POST, &path, Some(&body)).await;
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let created: Value = serde_json::from_slice(&bytes).unwrap();
        created["id"].as_str().unwrap().to_owned()
    }
}
