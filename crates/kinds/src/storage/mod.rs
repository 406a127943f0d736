//! storage.k8s.io

pub mod csi_driver;
pub mod csi_node;
pub mod csi_storage_capacity;
pub mod storage_class;
#[cfg(test)]
mod tests;
pub mod volume_attachment;
pub mod volume_attributes_class;
