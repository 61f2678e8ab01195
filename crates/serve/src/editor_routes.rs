//! The paths of editors at other places: a WebSocket, or plain requests where the protocol has them.

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;

use crate::http_editors::{delete, events, post, wants_events};
use crate::protocol::Endpoint;
use crate::sockets::{Sockets, upgrade};

impl Sockets {
    /// The routes; each path is one of `Site::is_client`.
    pub fn routes(&self, endpoints: &[Endpoint]) -> Router {
        let mut router = Router::new();
        for endpoint in endpoints {
            let state = (self.clone(), *endpoint);
            let methods = match endpoint.has_http {
                true => get(either).post(post).delete(delete),
                false => get(upgrade),
            };
            router = router.merge(Router::new().route(endpoint.path, methods).with_state(state));
        }
        router
    }
}

async fn either(state: State<(Sockets, Endpoint)>, request: Request) -> Response {
    match wants_events(request.headers()) {
        true => events(state, request.headers().clone()).await,
        false => upgrade(state, request).await,
    }
}
