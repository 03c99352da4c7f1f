;;; What the tests in Emacs have in common; each finding is a line of JSON in the file
;;; that the environment's FINDINGS names. Loaded after the documented setup.

(require 'json)
(require 'package)
(package-initialize)
(require 'eglot)
(require 'flymake)

(setq eglot-sync-connect 60
      jsonrpc-default-request-timeout 60
      eglot-confirm-server-initiated-edits nil
      eglot-report-progress nil
      eglot-send-changes-idle-time 0)

(defvar patience 60 "Seconds until something that was to happen counts as not happening.")

(defun tell (name value)
  "Write VALUE as what was found under NAME."
  (write-region (concat (json-encode (vector name value)) "\n") nil (getenv "FINDINGS") 'append 'silent))

(defun await (look)
  "What the function LOOK gives, once that is not nil."
  (let ((end (+ (float-time) patience)) found)
    (while (and (not (setq found (funcall look))) (< (float-time) end))
      (accept-process-output nil 0.05))
    (or found (error "It did not come to pass: %S" look))))

(defun hover-says (word)
  "What eldoc is given at WORD; a server that is not ready may say nothing, and is asked again."
  (goto-char (point-min))
  (search-forward word)
  (goto-char (match-beginning 0))
  (let ((next 0) said)
    (substring-no-properties
     (await (lambda ()
              (when (> (float-time) next)
                (setq next (+ (float-time) 5))
                (eglot-hover-eldoc-function (lambda (words &rest _) (setq said words))))
              said)))))

(defun own-server ()
  "Connect to the server that the setup names."
  (let ((project-find-functions (list (lambda (folder) (cons 'transient folder)))))
    (apply #'eglot (eglot--guess-contact))))

(defun open-model ()
  "Visit the module with the server that the setup names."
  (find-file "model.py")
  (own-server)
  (await #'eglot-current-server))
