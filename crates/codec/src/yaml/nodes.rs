//! A YAML document as a tree of nodes. Aliases stay references: expanding them is the next step's business, with its
//! limits.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct NodeId(u32);

#[derive(Debug)]
pub(super) struct Node {
    pub kind: NodeKind,
    /// Counted from 1.
    pub line: usize,
}

#[derive(Debug)]
pub(super) enum NodeKind {
    Scalar {
        value: String,
        /// Empty if there is none.
        tag: String,
        /// Plain, so that its text decides what it is.
        implicit: bool,
    },
    Sequence(Vec<NodeId>),
    /// Keys and values in turn.
    Mapping(Vec<NodeId>),
    Alias {
        name: String,
        target: NodeId,
    },
}

#[derive(Debug, Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
}

impl Nodes {
    pub fn get(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub fn add(&mut self, kind: NodeKind, line: usize) -> NodeId {
        self.nodes.push(Node { kind, line });
        NodeId((self.nodes.len() - 1) as u32)
    }

    /// Appends to a collection.
    pub fn append(&mut self, parent: NodeId, child: NodeId) {
        match &mut self.nodes[parent.0 as usize].kind {
            NodeKind::Sequence(children) | NodeKind::Mapping(children) => children.push(child),
            NodeKind::Scalar { .. } | NodeKind::Alias { .. } => {}
        }
    }
}
