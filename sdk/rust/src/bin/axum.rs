//! A shop on axum: each route is a resource, readers are let go first, callers are told apart by a header.

use axum::extract::Request;
use axum::{Router, routing::get};
use tidegate_client::tower::TidegateLayer;
use tidegate_client::{Class, Client, EntryRequest, origin_of};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect()?;
    let (read, write) = (client.resource("orders-read")?, client.resource("orders-write")?);
    let pick = move |request: &Request| {
        let asked = match request.method().is_safe() {
            true => EntryRequest::of(read.clone()).class(Class::Sheddable),
            false => EntryRequest::of(write.clone()),
        };
        Some(asked.origin(origin_of(request.headers())))
    };
    let guard = TidegateLayer::new(pick, tokio::time::sleep).problem_json();
    let orders = get(|| async { "42 orders\n" }).post(|| async { "taken\n" });
    let shop = Router::new().route("/orders", orders).layer(guard);
    let listener = tokio::net::TcpListener::bind(tidegate_examples::address()).await?;
    client.watch_listener(&listener)?;
    Ok(axum::serve(listener, shop).await?)
}
