//! The operations for operators and for readers of the documentation.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{
    graph,
    operation::{Answer, Operation},
};
use crate::api::{graph::MEDIA, problem::ProblemKind};

pub(super) const OPERATORS: &str = "Operation";
pub(super) const READERS: &str = "Documentation";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        alive(),
        ready(),
        metrics(),
        index(),
        description(),
        docs(),
        docs_file(),
        problem_list(),
        problem_page(),
        media(),
    ]
}

fn alive() -> Operation {
    Operation {
        description: "Answers as long as the process serves requests; looks at nothing else.",
        ..public("/healthz", "alive", OPERATORS, "Is the process alive?", word("alive"))
    }
}

fn ready() -> Operation {
    let mut content = word("ready");
    content["application/json"]["schema"]["properties"]["warnings"] = json!({
        "type": "array",
        "description": "What the operator should look at, although this instance serves all requests; absent when there is nothing.",
        "items": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "detail": {"type": "string"}},
            "required": ["name", "detail"],
        },
    });
    Operation {
        description: "Answers 200 while this instance can read and write its data, and 503 otherwise and from the moment it is told to stop. For balancers.",
        refusals: vec![
            ProblemKind::NotReady,
            ProblemKind::StorageFull,
            ProblemKind::Unavailable,
            ProblemKind::OutcomeUnknown,
            ProblemKind::Deadline,
        ],
        ..public("/readyz", "ready", OPERATORS, "Does this instance take requests?", content)
    }
}

fn metrics() -> Operation {
    Operation {
        description: "Counters and histograms in the text format of Prometheus.",
        ..public("/metrics", "metrics", OPERATORS, "How is it doing?", texts(&["text/plain"]))
    }
}

fn description() -> Operation {
    let schema = json!({
        "type": "object",
        "properties": {
            "openapi": {"type": "string", "const": "3.1.0"},
            "info": {"type": "object"},
            "paths": {"type": "object"},
            "components": {"type": "object"},
        },
        "required": ["openapi", "info", "paths", "components"],
    });
    let content = json!({"application/json": {"schema": schema}});
    Operation {
        description: "The description of every operation, as OpenAPI 3.1.",
        ..public("/openapi.json", "openApiDocument", READERS, "This description", content)
    }
}

fn docs() -> Operation {
    Operation {
        description: "This description as a page on which operations can be tried out.",
        ..public("/docs", "docs", READERS, "The API, browsable", texts(&["text/html"]))
    }
}

fn docs_file() -> Operation {
    let mut content = texts(&["text/css", "text/html", "text/javascript"]);
    content["image/png"] = json!({});
    Operation {
        description: "Style sheets, scripts and images of the page.",
        parameters: &["DocsFile"],
        refusals: vec![ProblemKind::NotFound],
        ..public("/docs/{file}", "docsFile", READERS, "A file of that page", content)
    }
}

fn index() -> Operation {
    let schema = json!({
        "type": "object",
        "properties": {
            "service": {"type": "string", "const": "galley"},
            "version": {"type": "string"},
            "api": {"type": "string"},
            "links": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["service", "version", "api", "links"],
    });
    let mut content = texts(&["text/html"]);
    content["application/json"] = json!({"schema": schema});
    Operation {
        description: "What runs here, its version, and where to go on: a page, or JSON for a client that accepts JSON and not HTML.",
        ..public("/", "index", READERS, "What runs here", content)
    }
}

fn problem_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "remedy": {"type": "string"},
        },
        "required": ["type", "title", "status", "remedy"],
    })
}

fn problem_list() -> Operation {
    let schema = json!({
        "type": "object",
        "properties": {"data": {"type": "array", "items": problem_schema()}},
        "required": ["data"],
    });
    let mut content = texts(&["text/html"]);
    content["application/json"] = json!({"schema": schema});
    Operation {
        description: "All problems that a response can have: a page, or JSON for a client that accepts JSON and not HTML.",
        ..public("/problems", "problemList", READERS, "All problems", content)
    }
}

fn problem_page() -> Operation {
    let mut content = texts(&["text/html"]);
    content["application/json"] = json!({"schema": problem_schema()});
    Operation {
        description: "What the problem means and what can be done about it. The `type` of every problem document leads here.",
        parameters: &["Slug"],
        refusals: vec![ProblemKind::NotFound],
        ..public("/problems/{slug}", "problemPage", READERS, "About a problem", content)
    }
}

fn media() -> Operation {
    const HEADERS: &[&str] = &["Cache-Control", "ETag", "Accept-Ranges"];
    const PART: &[&str] = &["Cache-Control", "ETag", "Accept-Ranges", "Content-Range"];
    let types = ["image/gif", "image/jpeg", "image/png", "video/mp4", "video/3gpp"];
    let types = types.into_iter().chain(["application/pdf", "application/octet-stream"]);
    let content = Value::Object(types.map(|it| (it.to_owned(), json!({}))).collect());
    let answer = |status, description, headers, content| Answer {
        status,
        description,
        headers,
        content,
        links: None,
    };
    let same = "The caller has the file: its tag is among those in If-None-Match.";
    Operation {
        description: "The file that an upload has made, public to every client that knows its address: templates are shown with it. Its type is told by its first bytes. HEAD answers the same without the bytes.",
        parameters: &["MediaName", "WantedMedia", "KnownMedia", "Range"],
        answers: vec![
            answer(StatusCode::OK, "The whole file.", HEADERS, Some(content.clone())),
            answer(StatusCode::PARTIAL_CONTENT, "Some of it.", PART, Some(content)),
            answer(StatusCode::NOT_MODIFIED, same, HEADERS, None),
        ],
        refusals: vec![
            ProblemKind::NotFound,
            ProblemKind::RevisionOutdated,
            ProblemKind::RangeNotThere,
            ProblemKind::Unavailable,
            ProblemKind::Deadline,
            ProblemKind::DamagedData,
            ProblemKind::Internal,
        ],
        ..public(MEDIA, "media", graph::TAG, "The sample of an attachment", Value::Null)
    }
}

/// A public operation without parameters.
fn public(
    path: &'static str,
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
    content: Value,
) -> Operation {
    Operation {
        method: "get",
        path,
        id,
        tag,
        summary,
        description: "",
        scope: None,
        parameters: &[],
        body: None,
        answers: vec![Answer {
            status: StatusCode::OK,
            description: "All is well.",
            headers: &["Cache-Control"],
            content: Some(content),
            links: None,
        }],
        refusals: Vec::new(),
    }
}

/// `{"status": …}` with one word.
fn word(word: &str) -> Value {
    let schema = json!({
        "type": "object",
        "properties": {"status": {"type": "string", "const": word}},
        "required": ["status"],
    });
    json!({"application/json": {"schema": schema, "example": {"status": word}}})
}

fn texts(media_types: &[&str]) -> Value {
    let content =
        media_types.iter().map(|it| ((*it).to_owned(), json!({"schema": {"type": "string"}})));
    Value::Object(content.collect())
}
