//! From what a path names (`name`, `name:port`, `scheme:name:port`) to an address.

use super::Parts;
use kubelith_codec::json;
use kubelith_meta::names::parse_ip_sloppy;
use kubelith_meta::{GroupResource, Status, Value};
use kubelith_outbound::proxy::Transport;
use kubelith_registry::Resource;
use std::net::IpAddr;
use std::sync::Arc;

/// Where to send a request.
pub struct Location {
    pub transport: Arc<Transport>,
    /// `host` or `host:port`.
    pub authority: String,
}

/// Who asks for what, for errors.
pub struct Asked<'a> {
    pub resource: GroupResource,
    pub namespace: &'a str,
    pub id: &'a str,
}

/// `name`, `name:port` or `scheme:name:port`.
#[derive(Debug, PartialEq, Eq)]
pub struct Id<'a> {
    pub scheme: &'a str,
    pub name: &'a str,
    pub port: &'a str,
}

impl<'a> Id<'a> {
    pub fn parse(id: &'a str) -> Option<Id<'a>> {
        let parts: Vec<&str> = id.split(':').collect();
        let id = match parts.as_slice() {
            [name] => Id { scheme: "", name, port: "" },
            [name, port] => Id { scheme: "", name, port },
            [scheme, name, port] => Id { scheme, name, port },
            _ => return None,
        };
        (!id.name.is_empty() && matches!(id.scheme, "" | "http" | "https")).then_some(id)
    }
}

/// The newest state of an object.
pub async fn read(resource: &Resource, asked: &Asked<'_>, name: &str) -> Result<Value, Status> {
    let key = resource.key(asked.namespace, name)?;
    resource.hub.fresh().await.map_err(Status::internal_error)?;
    let found = resource.cache.get(&key).and_then(|o| json::parse(&o.json()).ok());
    found.ok_or_else(|| Status::not_found(&asked.resource, name))
}

/// An address as part of a URL.
pub fn authority(host: &str, port: &str) -> String {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    if port.is_empty() { host } else { format!("{host}:{port}") }
}

/// The address that a text means, if requests may be sent there. It is the one to dial: resolvers read numbers with leading
/// zeros as octal ones.
fn proxyable(text: &str) -> Option<IpAddr> {
    parse_ip_sloppy(text).map(|ip| ip.to_canonical()).filter(|ip| is_global_unicast(*ip))
}

/// Addresses that lead to somebody else's machine, not to this one or to many. An IPv4 address that is written as IPv6
/// leads to where the IPv4 address leads.
fn is_global_unicast(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let link_local = match address {
        IpAddr::V4(a) => a.is_link_local() || a.is_broadcast(),
        IpAddr::V6(a) => a.is_unicast_link_local(),
    };
    !(address.is_unspecified() || address.is_loopback() || address.is_multicast() || link_local)
}

impl Parts {
    fn by_scheme(&self, scheme: &str) -> Arc<Transport> {
        if scheme == "https" { self.tls.clone() } else { self.plain.clone() }
    }

    pub async fn pod_location(&self, asked: &Asked<'_>) -> Result<Location, Status> {
        let id = Id::parse(asked.id);
        let id = id.ok_or_else(|| Status::bad_request(format!("invalid pod request {:?}", asked.id)))?;
        let pod = read(&self.pods, asked, id.name).await?;
        let ports = containers(&pod, "containers").find_map(|c| c.get("ports")?.as_array()?.first());
        let first = ports.and_then(|p| p.get("containerPort")).and_then(Value::as_i64).map(|p| p.to_string());
        let port = if id.port.is_empty() { first.unwrap_or_default() } else { id.port.to_owned() };
        let address = pod.at(&["status", "podIPs"]).and_then(Value::as_array).and_then(|a| a.first());
        let address = address.map_or("", |a| a.str_at(&["ip"]));
        let address = proxyable(address).ok_or_else(|| Status::bad_request("address not allowed"))?;
        Ok(Location { transport: self.by_scheme(id.scheme), authority: authority(&address.to_string(), &port) })
    }

    /// A pod behind a service, by the service's endpoints. Addresses that are no pods are passed over.
    pub async fn service_location(&self, asked: &Asked<'_>) -> Result<Location, Status> {
        let id = Id::parse(asked.id);
        let id = id.ok_or_else(|| Status::bad_request(format!("invalid service request {:?}", asked.id)))?;
        let mut port = id.port.to_owned();
        if let Ok(number) = id.port.parse::<i64>() {
            let service = read(&self.services, asked, id.name).await?;
            let ports = service.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or(&[]);
            let found = ports.iter().find(|p| p.get("port").and_then(Value::as_i64) == Some(number));
            let none = || {
                let text = format!("no service port {number} found for service {:?}", id.name);
                Status::service_unavailable(text)
            };
            found.ok_or_else(none)?.str_at(&["name"]).clone_into(&mut port);
        }
        let endpoints = read(&self.endpoints, asked, id.name).await?;
        let none = |name: &str| Status::service_unavailable(format!("no endpoints available for service {name:?}"));
        let subsets = endpoints.get("subsets").and_then(Value::as_array).unwrap_or(&[]);
        if subsets.is_empty() {
            return Err(none(id.name));
        }
        let mut found = Vec::new();
        for subset in subsets {
            let list = |key: &str| subset.get(key).and_then(Value::as_array).unwrap_or(&[]);
            let Some(number) = list("ports").iter().find(|p| p.str_at(&["name"]) == port) else { continue };
            let number = number.get("port").and_then(Value::as_i64).unwrap_or(0).to_string();
            let pods = list("addresses").iter().filter(|a| self.is_pod(asked.namespace, a));
            let addresses = pods.filter_map(|a| proxyable(a.str_at(&["ip"])));
            found.extend(addresses.map(|ip| authority(&ip.to_string(), &number)));
        }
        if found.is_empty() {
            return Err(none(asked.id));
        }
        let turn =
            usize::try_from(self.pods.made_up.bits(&["endpoint", asked.namespace, id.name]) % (found.len() as u64))
                .unwrap_or(0);
        Ok(Location { transport: self.by_scheme(id.scheme), authority: found.swap_remove(turn) })
    }

    fn is_pod(&self, namespace: &str, address: &Value) -> bool {
        let target = |key: &str| address.str_at(&["targetRef", key]);
        if target("namespace") != namespace {
            return false;
        }
        let pod = self.pods.cache.get(&format!("{namespace}/{}", target("name")));
        let Some(pod) = pod.and_then(|o| json::parse(&o.json()).ok()) else { return false };
        let addresses = pod.at(&["status", "podIPs"]).and_then(Value::as_array).unwrap_or(&[]);
        addresses.iter().any(|a| a.str_at(&["ip"]) == address.str_at(&["ip"]))
    }

    pub async fn node_location(&self, asked: &Asked<'_>) -> Result<Location, Status> {
        let id = Id::parse(asked.id);
        let id = id.ok_or_else(|| Status::bad_request(format!("invalid node request {:?}", asked.id)))?;
        let kubelet = self.kubelets.of_node(id.name, &asked.resource).await?;
        let lookup = tokio::net::lookup_host((kubelet.host.as_str(), kubelet.port)).await;
        let no_host = |_| Status::bad_request(format!("lookup {}: no such host", kubelet.host));
        for address in lookup.map_err(no_host)? {
            if !is_global_unicast(address.ip()) {
                return Err(Status::bad_request("address not allowed"));
            }
        }
        if id.port.is_empty() || id.port.parse() == Ok(kubelet.port) {
            let authority = authority(&kubelet.host, &kubelet.port.to_string());
            return Ok(Location { transport: self.kubelets.transport(), authority });
        }
        Ok(Location { transport: self.by_scheme(id.scheme), authority: authority(&kubelet.host, id.port) })
    }
}

/// Containers of one of the lists of a pod.
pub fn containers<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    pod.at(&["spec", list]).and_then(Value::as_array).unwrap_or(&[]).iter()
}

/// The container that a request is about: the one named, or the only one.
pub fn container<'a>(pod: &'a Value, asked: &'a str) -> Result<&'a str, Status> {
    let name = pod.str_at(&["metadata", "name"]);
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let all = || lists.into_iter().flat_map(|list| containers(pod, list)).map(|c| c.str_at(&["name"]));
    if !asked.is_empty() {
        return match all().any(|c| c == asked) {
            true => Ok(asked),
            false => Err(Status::bad_request(format!("container {asked} is not valid for pod {name}"))),
        };
    }
    let mut own = containers(pod, "containers").map(|c| c.str_at(&["name"]));
    match (own.next(), own.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Status::bad_request(format!("a container name must be specified for pod {name}"))),
        _ => {
            let names = all().collect::<Vec<_>>().join(" ");
            let text = format!("a container name must be specified for pod {name}, choose one of: [{names}]");
            Err(Status::bad_request(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids() {
        for (text, want) in [
            ("a", Some(("", "a", ""))),
            ("a:80", Some(("", "a", "80"))),
            ("https:a:web", Some(("https", "a", "web"))),
            ("ftp:a:1", None),
            (":80", None),
            ("a:b:c:d", None),
        ] {
            assert_eq!(Id::parse(text).map(|i| (i.scheme, i.name, i.port)), want, "{text}");
        }
    }

    #[test]
    fn only_others_addresses_are_allowed() {
        // What is dialled, if anything is.
        for (address, want) in [
            ("10.0.0.1", Some("10.0.0.1")),
            ("192.0.2.1", Some("192.0.2.1")),
            ("2001:db8::1", Some("2001:db8::1")),
            ("::ffff:10.0.0.1", Some("10.0.0.1")),
            ("0177.0.0.1", Some("177.0.0.1")),
            ("127.0.0.1", None),
            ("0127.0.0.1", None),
            ("169.254.169.254", None),
            ("0.0.0.0", None),
            ("255.255.255.255", None),
            ("224.0.0.1", None),
            ("::", None),
            ("::1", None),
            ("fe80::1", None),
            ("ff02::1", None),
            ("::ffff:127.0.0.1", None),
            ("::ffff:7f00:1", None),
            ("::ffff:169.254.169.254", None),
            ("::ffff:a9fe:a9fe", None),
            ("::ffff:0.0.0.0", None),
            ("::ffff:255.255.255.255", None),
            ("::ffff:224.0.0.1", None),
            ("fe80::1%eth0", None),
            ("localhost", None),
            ("2130706433", None),
            ("", None),
        ] {
            assert_eq!(proxyable(address).map(|ip| ip.to_string()).as_deref(), want, "{address}");
        }
    }

    #[test]
    fn containers_must_be_clear() {
        let pod =
            |text: &str| json::parse(format!(r#"{{"metadata":{{"name":"p"}},"spec":{text}}}"#).as_bytes()).unwrap();
        let one = pod(r#"{"initContainers":[{"name":"i"}],"containers":[{"name":"a"}]}"#);
        let two = pod(r#"{"initContainers":[{"name":"i"}],"containers":[{"name":"a"},{"name":"b"}]}"#);
        assert_eq!(container(&one, "").unwrap(), "a");
        assert_eq!(container(&one, "i").unwrap(), "i");
        assert_eq!(container(&one, "x").unwrap_err().message, "container x is not valid for pod p");
        let text = "a container name must be specified for pod p, choose one of: [i a b]";
        assert_eq!(container(&two, "").unwrap_err().message, text);
    }
}
