//! A client on reqwest: calls to another service go out while its breaker is closed.

use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, Error, Middleware, Next, Result};
use tidegate_client::{Client, Direction, Resource};

struct Guard(Resource);

#[async_trait::async_trait]
impl Middleware for Guard {
    async fn handle(&self, request: Request, extensions: &mut http::Extensions, next: Next<'_>) -> Result<Response> {
        let asked = self.0.ask().direction(Direction::Out).enter_async().await;
        let permit = asked.map_err(Error::middleware)?;
        let answer = next.run(request, extensions).await;
        let failed = answer.as_ref().map_or(true, |answer| answer.status().is_server_error());
        if failed {
            permit.error()
        } else {
            permit.ok()
        }
        answer
    }
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let payment = Client::connect()?.resource("call-payment")?;
    let http = ClientBuilder::new(reqwest::Client::new()).with(Guard(payment)).build();
    let url = format!("http://{}/orders", tidegate_examples::address());
    println!("{}", http.get(url).send().await?.status());
    Ok(())
}
