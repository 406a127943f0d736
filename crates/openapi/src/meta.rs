//! OpenAPI names of the types that operations of every resource use.

pub const CREATE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.CreateOptions";
pub const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub const GET_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.GetOptions";
pub const LIST_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListOptions";
pub const PATCH_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.PatchOptions";
pub const UPDATE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.UpdateOptions";
pub const API_GROUP: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup";
pub const API_GROUP_LIST: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList";
pub const API_RESOURCE_LIST: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList";
pub const API_VERSIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions";
pub const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
pub const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
pub const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
pub const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";
pub const VERSION_INFO: &str = "io.k8s.apimachinery.pkg.version.Info";
