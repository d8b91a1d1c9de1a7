//! The endpoints, in one list: the router, the check of parameters and the page `docs/api.md` are
//! made of it.

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::routing::{MethodRouter, get, post};
use serde_json::json;

use crate::when;

use super::answer::{self, Answer, Refusal, nearest};
use super::asked::Asked;
use super::{Serving, changes, frames, now, past};

/// Something that can be asked.
pub(super) struct Endpoint {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) parameters: &'static [Parameter],
    /// What comes back, by media type.
    pub(super) answer: &'static str,
    /// What it is for.
    pub(super) about: &'static str,
    route: fn() -> MethodRouter<Arc<Serving>>,
}

/// What may stand behind the question mark.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    /// How it is written.
    pub(super) form: &'static str,
    /// What it says, and what holds without it.
    pub(super) about: &'static str,
    /// A value for the page's example and for the test that asks every endpoint.
    pub(super) example: &'static str,
}

/// How a moment is written.
const TIME: &str = "TIME";

/// All of them.
pub(super) static ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/v1",
        parameters: &[],
        answer: "a list: `method`, `path`, `parameters`, `answer`, `about`",
        about: "What can be asked: this list.",
        route: || get(list),
    },
    Endpoint {
        method: Method::GET,
        path: "/v1/snapshot",
        parameters: &[Parameter {
            name: "at",
            form: TIME,
            about: "The stored snapshot of that moment, or the nearest before it, or else the \
                    oldest; without it the newest, from memory.",
            example: "-1s",
        }],
        answer: "the document of `infertop once --json`; with `Accept: application/vnd.msgpack` \
                 the snapshot as it is stored",
        about: "A snapshot. The headers `infertop-number` and `infertop-at-ms` say which \
                tick it is of, and of when.",
        route: || get(now::snapshot),
    },
    Endpoint {
        method: Method::GET,
        path: "/v1/frames",
        parameters: &[],
        answer: "one JSON document a line, without end; with \
                 `Accept: application/vnd.infertop.frames` binary pieces",
        about: "Every snapshot as it comes, the newest at once. A reader that is late gets the \
                newest and is told in `lost` how many it missed right before. A line without \
                `schema` tells only how sampling stands: it comes when that changes, and each 5 s \
                without a snapshot.",
        route: || get(frames::stream),
    },
    Endpoint {
        method: Method::GET,
        path: "/v1/neighbour",
        parameters: &[
            Parameter { name: "at", form: TIME, about: "From here.", example: "-1s" },
            Parameter {
                name: "forward",
                form: "`true` or `false`",
                about: "The one after it; without it the one before.",
                example: "false",
            },
        ],
        answer: "as `/v1/snapshot`; 404 where there is none on that side",
        about: "The stored snapshot next to a moment.",
        route: || get(past::neighbour),
    },
    Endpoint {
        method: Method::GET,
        path: "/v1/window",
        parameters: &[
            Parameter {
                name: "until",
                form: TIME,
                about: "The end; now without it.",
                example: "now",
            },
            Parameter {
                name: "ticks",
                form: "1 to 1000",
                about: "So many snapshots; 300 without it.",
                example: "300",
            },
        ],
        answer: "the rings behind the dashboard's sparklines, as MessagePack",
        about: "What the snapshots before a moment say, for dashboards.",
        route: || get(past::window),
    },
    Endpoint {
        method: Method::GET,
        path: "/v1/history",
        parameters: &[
            Parameter {
                name: "metric",
                form: "a name of `docs/metrics.md`",
                about: "Which one.",
                example: "infertop_gpu_busy_ratio",
            },
            Parameter {
                name: "from",
                form: TIME,
                about: "Begin; without it an hour before the end.",
                example: "-10m",
            },
            Parameter { name: "to", form: TIME, about: "End; now without it.", example: "now" },
            Parameter {
                name: "step",
                form: "DURATION",
                about: "Length of a step. Made longer where a series would have more than 2,000 \
                        points, or all together more than 50,000.",
                example: "10s",
            },
        ],
        answer: "`metric`, `from_ms`, `step_ms` (the step used) and `series`: `subject`, `name`, \
                 `label`, and `min`, `mean`, `max` with a value a step, `null` where there is none",
        about: "A metric over a stretch of time.",
        route: || get(past::history),
    },
    Endpoint {
        method: Method::GET,
        path: "/v1/marks",
        parameters: &[
            Parameter {
                name: "from",
                form: TIME,
                about: "Begin; without it a day before the end.",
                example: "-7d",
            },
            Parameter { name: "to", form: TIME, about: "End; now without it.", example: "now" },
        ],
        answer: "a list, oldest first: `at_ms`, `until_ms`, `kind`, `severity`, `subject`, `text`",
        about: "What happened: findings, Xids, starts and ends, driver changes, releases.",
        route: || get(past::marks),
    },
    Endpoint {
        method: Method::GET,
        path: "/v1/span",
        parameters: &[],
        answer: "`from_ms` and `to_ms`, or `null`",
        about: "The stretch of which whole snapshots are stored.",
        route: || get(past::span),
    },
    Endpoint {
        method: Method::GET,
        path: "/v1/findings",
        parameters: &[],
        answer: "a list of findings, worst first",
        about: "What is wrong now.",
        route: || get(now::findings),
    },
    Endpoint {
        method: Method::GET,
        path: "/v1/health",
        parameters: &[],
        answer: "`status`: `ok`, `degraded`, `starting` or `released`, with `reasons` in words",
        about: "How the daemon is. Answered from memory: waits for no driver call and no disk. \
                The code is 200 whatever the status.",
        route: || get(now::health),
    },
    Endpoint {
        method: Method::GET,
        path: "/v1/self",
        parameters: &[],
        answer: "figures of the daemon, its sampler and its socket",
        about: "What watching costs, and what was served.",
        route: || get(now::own),
    },
    Endpoint {
        method: Method::POST,
        path: "/v1/release",
        parameters: &[Parameter {
            name: "for",
            form: "DURATION",
            about: "Take the GPUs again after so long; without it, on `/v1/resume` alone.",
            example: "10m",
        }],
        answer: "`released`, `took_ms`, `holders` (who else has a device file open), \
                 `denied_processes` (whose could not be seen)",
        about: "Let go of every device file of the driver, so that it can be reset or unloaded.",
        route: || post(changes::release),
    },
    Endpoint {
        method: Method::POST,
        path: "/v1/resume",
        parameters: &[],
        answer: "`resumed`: whether they had been let go",
        about: "Take the GPUs again.",
        route: || post(changes::resume),
    },
    Endpoint {
        method: Method::POST,
        path: "/v1/reload",
        parameters: &[],
        answer: "`changed`: what is different now, a line each; 422 with the reason when the new \
                 configuration is refused and the old one stays",
        about: "Read the configuration again.",
        route: || post(changes::reload),
    },
];

/// Hands requests to those who answer them.
pub(super) fn router(serving: Arc<Serving>) -> Router {
    let mut router = Router::new();
    for endpoint in ENDPOINTS {
        router = router.route(endpoint.path, (endpoint.route)());
    }
    router
        .fallback(async |uri: Uri| nothing_there(uri.path()))
        .method_not_allowed_fallback(async |uri: Uri| other_method(uri.path()))
        .with_state(serving)
}

/// The list itself, for whoever has only the socket.
async fn list(_: Asked) -> Answer {
    let parameter = |known: &Parameter| {
        let Parameter { name, form, about, example } = known;
        json!({ "name": name, "form": form, "about": about, "example": example })
    };
    let endpoint = |known: &Endpoint| {
        json!({
            "method": known.method.as_str(),
            "path": known.path,
            "parameters": known.parameters.iter().map(parameter).collect::<Vec<_>>(),
            "answer": known.answer,
            "about": known.about,
        })
    };
    answer::json(&ENDPOINTS.iter().map(endpoint).collect::<Vec<_>>())
}

/// The names of the parameters that an endpoint knows.
pub(super) fn parameters(method: &Method, path: &str) -> Vec<&'static str> {
    // HEAD is GET without the body.
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let found = ENDPOINTS.iter().find(|known| known.path == path && known.method == *method);
    found.into_iter().flat_map(|known| known.parameters).map(|known| known.name).collect()
}

fn nothing_there(path: &str) -> Refusal {
    let near = nearest(path, ENDPOINTS.iter().map(|endpoint| endpoint.path));
    let all = || {
        let all: Vec<_> = ENDPOINTS.iter().map(|endpoint| endpoint.path).collect();
        format!("there are {}", all.join(", "))
    };
    let help = near.first().map_or_else(all, |near| format!("did you mean {near}?"));
    Refusal::new(StatusCode::NOT_FOUND, format!("there is no {}", when::quoted(path)), help)
}

fn other_method(path: &str) -> Refusal {
    let known = ENDPOINTS.iter().find(|endpoint| endpoint.path == path);
    let method = known.map_or(&Method::GET, |endpoint| &endpoint.method);
    let help = format!("ask with {method}");
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, format!("{path} takes only {method}"), help)
}
