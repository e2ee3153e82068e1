//! What the page can ask: one JSON object in, one out. `docs/guide/explore.md` lists it.

use std::path::PathBuf;

use anyhow::Result;
use nearset::{MetricName, Shape};
use nearset_view::curves::plan_chart_beside_peers;
use nearset_view::snippets::snippets;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::duplicates::Corpus;
use super::filters;
use super::guard::Guard;
use super::http::{Request, Response};
use crate::options::Usage;
use crate::{cures, plan};

/// Everything that requests are answered from.
pub struct Api {
    pub guard: Guard,
    pub corpus: Corpus,
    /// Files of filters and indexes that were named.
    pub filters: Vec<PathBuf>,
}

impl Api {
    /// Answers a request, or refuses it.
    pub fn answer(&self, request: &Request) -> Response {
        self.checked(request).unwrap_or_else(|refusal| refusal)
    }

    fn checked(&self, request: &Request) -> Result<Response, Response> {
        self.guard.check_origin(request)?;
        let Some(name) = request.path.strip_prefix("/api/") else {
            return match (&request.method[..], super::page(&request.path)) {
                ("GET", Some(file)) => Ok(file),
                (_, Some(_)) => Err(Response::refusal(405, "files of the page are read with GET")),
                (_, None) => Err(Response::refusal(404, "there is no such page")),
            };
        };
        if request.method != "POST" {
            return Err(Response::refusal(405, "the API is asked with POST"));
        }
        if name == "session" {
            #[derive(Deserialize)]
            struct Token {
                token: String,
            }
            let Token { token } = read(request)?;
            let session = self.guard.begin(&token)?;
            eprintln!("opened    for another window: {}", self.guard.address());
            return Ok(answered(&json!({ "session": session })));
        }
        self.guard.check_session(request)?;
        let answer = match name {
            "state" => Ok(self.state()),
            "decide" => self.corpus.decide(read(request)?),
            "border" => self.corpus.border(read(request)?),
            "clusters" => self.corpus.clusters(read(request)?),
            "members" => self.corpus.members(read(request)?),
            "search" => self.corpus.search(read(request)?),
            "pair" => self.corpus.pair(read(request)?),
            "mark" => self.corpus.mark(read(request)?),
            "marks" => self.corpus.marks(),
            "plan" => planned(read(request)?),
            "filter" => filters::describe(read(request)?),
            "ask" => filters::ask(read(request)?),
            _ => return Err(Response::refusal(404, "the API has no such question")),
        };
        match answer {
            Ok(value) => Ok(answered(&value)),
            Err(error) => {
                let mut why = match error.is::<Usage>() {
                    true => format!("{error:#}"),
                    false => cures::words("explore", &error),
                };
                if let Some(hint) = cures::hint("explore", &error) {
                    why = format!("{why}: {hint}");
                }
                // That it can't be done is an answer; requests that are refused are another matter.
                Ok(answered(&json!({ "error": why })))
            }
        }
    }

    fn state(&self) -> Value {
        let metric = |name: MetricName| {
            let metric = name.with(Shape { length: Some(1), shingling: None }).ok();
            json!({
                "name": name.as_str(),
                "title": name.title(),
                "length": name.form().length_option(),
                "shingle": name.form().length_option().is_none(),
                "larger_is_nearer": metric.is_some_and(|metric| metric.larger_is_nearer()),
            })
        };
        let filters: Vec<String> = self.filters.iter().map(|path| path.display().to_string()).collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "filters": filters,
            "metrics": MetricName::ALL.into_iter().map(metric).collect::<Vec<_>>(),
            "corpus": self.corpus.state(),
        })
    }
}

/// What is asked, from the body of a request.
fn read<T: DeserializeOwned>(request: &Request) -> Result<T, Response> {
    let body = if request.body.is_empty() { b"{}" } else { &request.body[..] };
    serde_json::from_slice(body)
        .map_err(|cause| Response::refusal(400, &format!("the question makes no sense: {cause}")))
}

fn answered(value: &Value) -> Response {
    Response::new(200, "application/json", value.to_string())
}

/// What a plan is asked for: the options of `nearset plan`, as they are typed there.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    metric: String,
    near: String,
    far: Option<String>,
    capacity: String,
    bits: Option<String>,
    dimension: Option<String>,
    length: Option<String>,
    shingle: Option<String>,
    #[serde(rename = "max-fn")]
    max_fn: Option<String>,
    #[serde(rename = "max-fp")]
    max_fp: Option<String>,
    minimise: Option<String>,
    background: Option<String>,
}

fn planned(wanted: Wanted) -> Result<Value> {
    let options = [
        ("metric", Some(wanted.metric)),
        ("near", Some(wanted.near)),
        ("far", wanted.far),
        ("capacity", Some(wanted.capacity)),
        ("bits", wanted.bits),
        ("dimension", wanted.dimension),
        ("length", wanted.length),
        ("shingle", wanted.shingle),
        ("max-fn", wanted.max_fn),
        ("max-fp", wanted.max_fp),
        ("minimise", wanted.minimise),
        ("background", wanted.background),
    ];
    let given = options
        .into_iter()
        .filter_map(|(name, value)| value.filter(|value| !value.is_empty()).map(|value| (name, value)));
    let args = plan::Args::typed(given.map(|(name, value)| format!("--{name}={value}")))?;
    let answer = args.answer()?;
    let typed = snippets(&answer.request);
    Ok(json!({
        "plan": answer.json(),
        "words": answer.words(&args, 88),
        "svg": answer.plan().map(|plan| plan_chart_beside_peers(plan).to_svg()),
        "command": typed.command,
        "python": typed.python,
        "rust": typed.rust,
    }))
}
