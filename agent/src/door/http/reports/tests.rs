use http_body_util::BodyExt as _;

use super::*;
use crate::host::bounds::ANSWERS_BYTES;
use crate::host::tests::agent;
use crate::tenant::HOST;
use crate::tenant::peer_scope::PeerScope;

/// A caller of the default tenant.
fn caller(context: &AgentState, uid: u32) -> Caller {
    Caller {
        holder: Holder { uid, pid: uid },
        scope: Arc::new(PeerScope::found_at(HOST)),
        view: View {
            own: context.tenants.default_one().clone(),
            sees_all: false,
        },
    }
}

/// Reports, with names enough for a long text where that is asked for.
fn reports(long: bool) -> Arc<Reports> {
    let context = agent();
    let directory = context.default_tenant().directory();
    for number in 0..if long { 48 } else { 1 } {
        let name = format!("{number}{}", "n".repeat(100));
        directory.resolve(&name);
    }
    Reports::new(context)
}

async fn text(answer: Response) -> Bytes {
    let body = answer.into_body().collect().await.unwrap();
    body.to_bytes()
}

#[tokio::test]
async fn field_b3_a_long_text_is_made_once_for_all_who_may_read_it() {
    let reports = reports(true);
    let mut texts = Vec::new();
    for uid in 7..11 {
        let caller = caller(&reports.context, uid);
        let answer = reports
            .tell(Report::Metrics(ScrapeForm::Text), &caller)
            .await
            .unwrap();
        texts.push(text(answer).await);
    }
    let longest = texts[0].len();
    assert!(longest > SHORT, "{longest} bytes");
    texts.dedup();
    assert!(texts.len() < 4, "each text was made anew");
}

#[tokio::test]
async fn a_short_text_tells_what_the_caller_has_just_done() {
    let reports = reports(false);
    let caller = caller(&reports.context, 7);
    for name in ["first", "second"] {
        let directory = reports.context.default_tenant().directory();
        directory.resolve(name);
        for report in [
            Report::Status,
            Report::Resources,
            Report::Metrics(ScrapeForm::Text),
        ] {
            let answer = reports.tell(report, &caller).await.unwrap();
            let told = text(answer).await;
            let told = String::from_utf8_lossy(&told);
            assert!(told.contains(name), "{report:?}: {told}");
        }
    }
}

#[tokio::test]
async fn field_b3_a_report_that_has_no_room_is_not_made() {
    let reports = reports(true);
    let [one, other] = [7, 8].map(|uid| caller(&reports.context, uid));
    let unread = reports
        .tell(Report::Metrics(ScrapeForm::Text), &one)
        .await
        .unwrap();
    let mut texts = reports.texts.lock().await;
    let key = key(Report::Metrics(ScrapeForm::Text), &one.view);
    let length = texts.length(&key);
    texts.0.values_mut().for_each(|text| text.bytes = None);
    drop(texts);
    let answers = &reports.context.bounds.answers;
    let left = ANSWERS_BYTES / 4 - length;
    let _left = answers.take_many(one.holder, left).unwrap();
    let refused = reports
        .tell(Report::Metrics(ScrapeForm::Text), &one)
        .await
        .unwrap_err();
    assert_eq!(refused.into_response().status(), 503);
    let texts = reports.texts.lock().await;
    assert!(texts.0.values().all(|text| text.bytes.is_none()), "no work");
    drop(texts);
    reports
        .tell(Report::Metrics(ScrapeForm::Text), &other)
        .await
        .unwrap();
    drop(unread);
}

#[tokio::test]
async fn field_b5_all_who_scrape_the_port_have_one_text() {
    let reports = reports(false);
    let [one, two] = [
        reports.scrape(ScrapeForm::Text).await,
        reports.scrape(ScrapeForm::Text).await,
    ];
    assert_eq!(text(one.unwrap()).await, text(two.unwrap()).await);
}
