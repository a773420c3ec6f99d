//! A gRPC server on tonic: a permit lives until the trailers are sent, a refusal is a status with a pushback.

use tidegate_client::tower::TidegateLayer;
use tidegate_client::{Client, EntryRequest, origin_of};
use tonic::transport::Server;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect()?;
    let calls = client.resource("grpc-calls")?;
    let pick = move |request: &http::Request<tonic::body::Body>| {
        Some(EntryRequest::of(calls.clone()).origin(origin_of(request.headers())))
    };
    let (health, service) = tonic_health::server::health_reporter();
    health.set_service_status("", tonic_health::ServingStatus::Serving).await;
    Server::builder()
        .layer(TidegateLayer::grpc(pick, tokio::time::sleep))
        .add_service(service)
        .serve(tidegate_examples::address())
        .await?;
    Ok(())
}
