//! The dashboard and the alerting rules in `deploy/`: they use only metrics that a running service
//! has, and Grafana can show the dashboard.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::Value;

use crate::{
    http::{Request, TIMEOUT},
    service::{Launch, Service, document, until},
};

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn dashboard() -> Value {
    serde_json::from_str(&read("deploy/grafana/galley.json")).unwrap()
}

/// The page `/metrics` of a service that has read the totals of its database.
fn metrics(service: &Service) -> String {
    assert_eq!(service.create(&document("one", "Hello!")).status, 201);
    let page = || service.send(&Request::get("/metrics")).text();
    until(TIMEOUT, "the database was read", || {
        page().contains("\ngalley_store_sample_timestamp_seconds ")
    });
    page()
}

/// The metrics with their types.
fn families(page: &str) -> BTreeMap<&str, &str> {
    page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect()
}

/// The names of metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|it| it.starts_with("galley_") || it.starts_with("process_")).collect()
}

#[test]
fn dashboard_alerts_and_documents_use_metrics_of_a_running_service() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let page = metrics(&service);
    let families = families(&page);
    let series: BTreeSet<&str> = page
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let files = [
        "deploy/grafana/galley.json",
        "deploy/prometheus/alerts.yml",
        "deploy/prometheus/alerts_test.yml",
    ];
    for file in files {
        let text = read(file);
        let used = names(&text);
        assert!(used.len() > 10, "{file} uses {used:?}");
        for name in used {
            assert!(series.contains(name), "{file} uses {name}, which the service does not have");
        }
    }
    let documented = read("docs/operations/monitoring.md");
    let documented = names(&documented);
    for name in &documented {
        let is_known = families.contains_key(name) || series.contains(name);
        assert!(is_known, "the documented metric {name} does not exist");
    }
    for name in families.keys() {
        assert!(documented.contains(name), "{name} is not documented");
    }
    assert!(families.len() >= 30, "{families:?}");
}

#[test]
fn the_dashboard_shows_every_metric_of_the_service() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let page = metrics(&service);
    let text = read("deploy/grafana/galley.json");
    let shown = names(&text);
    for (name, kind) in families(&page) {
        let is_shown = match kind {
            "histogram" => shown.contains(&*format!("{name}_bucket")),
            _ => shown.contains(name),
        };
        assert!(is_shown, "{name} is not on the dashboard");
    }
}

#[test]
fn the_panels_of_the_dashboard_are_complete_and_do_not_overlap() {
    let dashboard = dashboard();
    assert_eq!(dashboard["uid"], "galley");
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    for variable in variables {
        // Otherwise, "All" would select every job of the Prometheus server.
        assert!(variable.get("allValue").is_none(), "{variable}");
    }
    let variables: Vec<_> = variables.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(variables, ["datasource", "job", "instance"]);
    let (mut ids, mut cells, mut rows) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title} has the id of another panel");
        let place = ["x", "y", "w", "h"].map(|name| panel["gridPos"][name].as_u64().unwrap());
        let [left, top, width, height] = place;
        assert!(left + width <= 24, "{title} is too wide");
        for cell in (left..left + width).flat_map(|x| (top..top + height).map(move |y| (x, y))) {
            assert!(cells.insert(cell), "{title} overlaps another panel");
        }
        if panel["type"] == "row" {
            rows.push(title.to_owned());
        } else {
            assert_panel(panel, title);
        }
    }
    let expected = [
        "Overview",
        "Traffic",
        "Latency",
        "Writes",
        "Search",
        "Webhooks",
        "Reviews",
        "Limits",
        "Process",
        "Providers",
    ];
    assert_eq!(rows, expected);
}

/// Asserts that a panel has a type, a unit, and queries of the data source that the user selects.
fn assert_panel(panel: &Value, title: &str) {
    assert!(["timeseries", "stat"].iter().any(|it| panel["type"] == *it), "{title}");
    assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{title} has no unit");
    let targets = panel["targets"].as_array().unwrap();
    assert!(!targets.is_empty(), "{title} has no query");
    let mut references = BTreeSet::new();
    for target in targets {
        assert!(references.insert(target["refId"].as_str().unwrap()), "{title}");
        assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
        let query = target["expr"].as_str().unwrap();
        let count = |bracket| query.chars().filter(|it| *it == bracket).count();
        for (open, close) in [('(', ')'), ('{', '}'), ('[', ']')] {
            assert_eq!(count(open), count(close), "{title}: {query}");
        }
        let selected = query.matches(r#"job=~"$job", instance=~"$instance""#).count();
        assert_eq!(selected, count('{'), "every metric of the selected instances: {query}");
    }
}
