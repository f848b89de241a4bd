//! Agents that configure the interfaces of their hosts, in network namespaces.
