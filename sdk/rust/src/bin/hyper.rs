//! A server on hyper without a framework: the tower layer around a function.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, server::conn::http1};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tidegate_client::{Client, tower::TidegateLayer};
use tower::{Layer as _, service_fn};

async fn order(_request: Request<Incoming>) -> Result<Response<Full<Bytes>>, std::io::Error> {
    Ok(Response::new(Full::from("taken\n")))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect()?;
    let orders = client.resource("orders-write")?;
    let pick = move |_request: &Request<Incoming>| Some(orders.clone());
    let guard = TidegateLayer::new(pick, tokio::time::sleep).problem_json();
    let service = TowerToHyperService::new(guard.layer(service_fn(order)));
    let listener = tokio::net::TcpListener::bind(tidegate_examples::address()).await?;
    client.watch_listener(&listener)?;
    loop {
        let stream = TokioIo::new(listener.accept().await?.0);
        tokio::spawn(http1::Builder::new().serve_connection(stream, service.clone()));
    }
}
