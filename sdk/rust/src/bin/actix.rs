//! A shop on actix-web: a middleware function that asks, and answers what is refused with a problem.

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::{Next, from_fn};
use actix_web::{App, Error, HttpResponse, HttpServer, http::StatusCode, web};
use tidegate_client::{Client, Resource};

async fn guard(
    orders: web::Data<Resource>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let permit = match orders.enter_async().await {
        Ok(permit) => permit,
        Err(refused) => {
            let status = StatusCode::from_u16(refused.http_status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
            let retry = ("Retry-After", refused.retry_after_s().to_string());
            let answer = HttpResponse::build(status).insert_header(retry).body(refused.problem(orders.name()));
            return Ok(request.into_response(answer));
        }
    };
    let answer = next.call(request).await;
    let failed = answer.as_ref().map_or(true, |answer| answer.status().is_server_error());
    if failed {
        permit.error()
    } else {
        permit.ok()
    }
    Ok(answer?.map_into_boxed_body())
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let client = Client::connect().map_err(std::io::Error::other)?;
    let orders = web::Data::new(client.resource("orders-write").map_err(std::io::Error::other)?);
    let app = move || {
        let shop = App::new().wrap(from_fn(guard)).app_data(orders.clone());
        shop.route("/orders", web::get().to(|| async { "42 orders\n" }))
    };
    HttpServer::new(app).workers(2).bind(tidegate_examples::address())?.run().await
}
