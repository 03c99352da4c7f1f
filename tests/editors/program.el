;;; What the tests do in Emacs with a file of HLO.

(find-file "step.hlo")
(call-interactively #'eglot)
(goto-char (point-min))
(search-forward "negate(%")
(let ((found (car (xref-backend-definitions 'eglot (xref-backend-identifier-at-point 'eglot)))))
  (tell "definition" (xref-location-line (xref-item-location found))))
(eglot-shutdown (eglot-current-server))
