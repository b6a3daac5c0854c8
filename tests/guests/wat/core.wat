;; A core module where a component is needed.
(module)
