//! `/debug/api_priority_and_fairness/…`: levels, queues and requests as they are now, as aligned tables.

use super::Fairness;
use super::level::{About, Clock};
use crate::routes::{Listing, Routes};
use http::StatusCode;
use kubelith_fairness::queue_set;
use kubelith_http::{BoxHandler, Reply, Request, query, respond};
use kubelith_meta::time::{Duration, Time};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;

const LEVELS: [&str; 10] = [
    "PriorityLevelName",
    "ActiveQueues",
    "IsIdle",
    "IsQuiescing",
    "WaitingRequests",
    "ExecutingRequests",
    "DispatchedRequests",
    "RejectedRequests",
    "TimedoutRequests",
    "CancelledRequests",
];
const QUEUES: [&str; 9] = [
    "PriorityLevelName",
    "Index",
    "PendingRequests",
    "ExecutingRequests",
    "SeatsInUse",
    "NextDispatchR",
    "InitialSeatsSum",
    "MaxSeatsSum",
    "TotalWorkSum",
];
/// The fifth is spelled as in the reference.
const REQUESTS: [&str; 10] = [
    "PriorityLevelName",
    "FlowSchemaName",
    "QueueIndex",
    "RequestIndexInQueue",
    "FlowDistingsher",
    "ArriveTime",
    "InitialSeats",
    "FinalSeats",
    "AdditionalLatency",
    "StartTime",
];
const DETAILS: [&str; 8] =
    ["UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource"];

pub fn install(fairness: &Arc<Fairness>, routes: &mut Routes) {
    type Dump = fn(&Fairness, &Request) -> Table;
    let dumps: [(&str, Dump); 3] =
        [("dump_priority_levels", levels), ("dump_queues", queues), ("dump_requests", requests)];
    for (name, dump) in dumps {
        let fairness = fairness.clone();
        let handler: BoxHandler = Arc::new(move |request: Request| -> Reply {
            let text = dump(&fairness, &request).text();
            Reply::Ready(respond::text(StatusCode::OK, text))
        });
        routes.exact(format!("/debug/api_priority_and_fairness/{name}"), Listing::Unlisted, handler);
    }
}

fn levels(fairness: &Fairness, _: &Request) -> Table {
    let mut table = Table::new(&LEVELS);
    for (name, entry) in &fairness.config().levels {
        let quiescing = entry.level.quiescing.load(Ordering::Relaxed);
        let state = entry.level.lock();
        let totals = state.queues.totals();
        let active = state.queues.queues().iter().filter(|queue| !queue.is_empty()).count();
        table.row([
            name.to_string(),
            active.to_string(),
            state.queues.is_idle().to_string(),
            quiescing.to_string(),
            totals.waiting.to_string(),
            totals.executing.to_string(),
            totals.dispatched.to_string(),
            totals.rejected.to_string(),
            totals.timed_out.to_string(),
            totals.cancelled.to_string(),
        ]);
    }
    table
}

fn queues(fairness: &Fairness, _: &Request) -> Table {
    let mut table = Table::new(&QUEUES);
    for (name, entry) in &fairness.config().levels {
        let state = entry.level.lock();
        for (index, queue) in state.queues.queues().iter().enumerate() {
            table.row([
                name.to_string(),
                index.to_string(),
                queue.len().to_string(),
                queue.executing.to_string(),
                queue.seats_in_use.to_string(),
                queue.next_start.to_string(),
                queue.initial_seats.to_string(),
                queue.max_seats.to_string(),
                queue.work.to_string(),
            ]);
        }
    }
    table
}

fn requests(fairness: &Fairness, request: &Request) -> Table {
    let detailed = query::first(request.uri().query(), "includeRequestDetails").is_some_and(|v| !v.is_empty());
    let mut table = Table::new(&REQUESTS);
    if detailed {
        table.rows[0].extend(DETAILS.map(str::to_owned));
    }
    for (name, entry) in &fairness.config().levels {
        let clock = entry.level.clock();
        let state = entry.level.lock();
        for (queue, place, request) in state.queues.requests() {
            let mut row = vec![name.to_string(), request.about.schema.spec.name.to_string()];
            row.extend([index(queue), index(place)]);
            row.extend(request_cells(clock, request));
            if detailed {
                row.extend(detail_cells(&request.about));
            }
            table.row(row);
        }
    }
    table
}

fn request_cells(clock: Clock, request: &queue_set::Request<About, oneshot::Sender<()>>) -> [String; 6] {
    let About { schema, user, info } = &request.about;
    let flow = match schema.has_flows() {
        true => schema.spec.flow(&super::digest(user, info)).to_owned(),
        false => String::new(),
    };
    let extra = i64::try_from(request.work.extra).unwrap_or(i64::MAX);
    [
        flow,
        rfc3339_nanos(clock.wall(request.arrived).into()),
        request.work.initial_seats.to_string(),
        request.work.final_seats.to_string(),
        Duration::from_nanos(extra).to_string(),
        rfc3339_nanos(request.started.map_or(Time::ZERO, |started| clock.wall(started).into())),
    ]
}

fn detail_cells(about: &About) -> [String; 8] {
    let info = &about.info;
    let api_version =
        if info.group.is_empty() { info.version.to_string() } else { format!("{}/{}", info.group, info.version) };
    let text = |s: &str| s.to_owned();
    [
        text(&about.user.name),
        text(&info.verb),
        text(&info.path),
        text(&info.namespace),
        text(&info.name),
        api_version,
        text(&info.resource),
        text(&info.subresource),
    ]
}

fn index(index: Option<usize>) -> String {
    index.map_or_else(|| "-1".to_owned(), |index| index.to_string())
}

/// With as many decimals as it needs, up to nine.
fn rfc3339_nanos(time: Time) -> String {
    let whole = time.rfc3339();
    if time.subsec_nanos() == 0 {
        return whole;
    }
    let decimals = format!("{:09}", time.subsec_nanos());
    format!("{}.{}Z", whole.trim_end_matches('Z'), decimals.trim_end_matches('0'))
}

/// Cells end in commas and are filled up to the width of their column.
struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    const MIN_WIDTH: usize = 8;

    fn new(headers: &[&str]) -> Table {
        Table { rows: vec![headers.iter().map(|header| (*header).to_owned()).collect()] }
    }

    fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
    }

    fn text(&self) -> String {
        let columns = self.rows[0].len();
        let width = |column: usize| {
            // The comma, and a space at least.
            let widest = self.rows.iter().map(|row| row[column].chars().count() + 2).max();
            widest.unwrap_or(0).max(Table::MIN_WIDTH)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                text.push_str(cell);
                if column + 1 < columns {
                    text.push(',');
                    text.extend(std::iter::repeat_n(' ', widths[column] - cell.chars().count() - 1));
                }
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["Name", "LongerName", "Last"]);
        table.row(["a-long-name", "1", "x"].map(str::to_owned));
        assert_eq!(table.text(), "Name,        LongerName, Last\na-long-name, 1,          x\n");
        assert_eq!(rfc3339_nanos(Time::from_unix_nanos(0, 120_000_000)), "1970-01-01T00:00:00.12Z");
        assert_eq!(rfc3339_nanos(Time::ZERO), "0001-01-01T00:00:00Z");
    }
}
