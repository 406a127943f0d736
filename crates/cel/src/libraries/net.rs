//! Addresses and ranges of addresses.

use super::{CIDR, IP, global, member, of};
use crate::decl::Function;
use crate::types::Type;

const ADDRESS: Type = Type::Named(IP);
const RANGE: Type = Type::Named(CIDR);

pub fn ip_functions() -> Vec<Function> {
    use Type::{Bool, Int, String};
    let test = |name, id| of(name, [member(id, [ADDRESS], Bool)]);
    vec![
        of("ip", [global("string_to_ip", [String], ADDRESS)]),
        of("family", [member("ip_family", [ADDRESS], Int)]),
        of("ip.isCanonical", [global("ip_is_canonical", [String], Bool)]),
        test("isUnspecified", "ip_is_unspecified"),
        test("isLoopback", "ip_is_loopback"),
        test("isLinkLocalMulticast", "ip_is_link_local_multicast"),
        test("isLinkLocalUnicast", "ip_is_link_local_unicast"),
        test("isGlobalUnicast", "ip_is_global_unicast"),
        of("isIP", [global("is_ip", [String], Bool)]),
        of("string", [global("ip_to_string", [ADDRESS], String)]),
    ]
}

pub fn cidr_functions() -> Vec<Function> {
    use Type::{Bool, Int, String};
    vec![
        of("cidr", [global("string_to_cidr", [String], RANGE)]),
        of(
            "containsIP",
            [
                member("cidr_contains_ip_string", [RANGE, String], Bool),
                member("cidr_contains_ip_ip", [RANGE, ADDRESS], Bool),
            ],
        ),
        of(
            "containsCIDR",
            [
                member("cidr_contains_cidr_string", [RANGE, String], Bool),
                member("cidr_contains_cidr", [RANGE, RANGE], Bool),
            ],
        ),
        of("ip", [member("cidr_ip", [RANGE], ADDRESS)]),
        of("prefixLength", [member("cidr_prefix_length", [RANGE], Int)]),
        of("masked", [member("cidr_masked", [RANGE], RANGE)]),
        of("isCIDR", [global("is_cidr", [String], Bool)]),
        of("string", [global("cidr_to_string", [RANGE], String)]),
    ]
}
