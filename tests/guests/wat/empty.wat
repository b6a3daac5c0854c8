;; A component that exports nothing, so it is no plugin.
(component)
