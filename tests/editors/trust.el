;;; What a person sees in Emacs of a folder that nobody may have decided about: the minibuffer's questions, and a hover once it
;;; says what the environment's EXPECTED does.

(defvar questions nil "What the minibuffer has asked.")
(advice-add 'completing-read :before (lambda (prompt &rest _) (push prompt questions)))

(open-model)
(hover-says "doubled(x")
(when (getenv "ASKS")
  (await (lambda () questions)))
(tell "hover"
      (await (lambda ()
               (let ((said (hover-says "doubled(x")))
                 (and (string-search (getenv "EXPECTED") said) said)))))
(tell "questions" (vconcat questions))
(eglot-shutdown (eglot-current-server))
