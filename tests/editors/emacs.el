;;; What the tests do in Emacs; each finding is printed as a line of JSON. Loaded after the documented setup.

(require 'json)
(require 'package)
(package-initialize)
(require 'eglot)
(require 'flymake)

(setq eglot-sync-connect 60
      eglot-confirm-server-initiated-edits nil
      eglot-report-progress nil
      eglot-send-changes-idle-time 0)

(defvar patience 60 "Seconds until something that was to happen counts as not happening.")

(defun tell (name value)
  "Print VALUE as what was found under NAME."
  (princ (concat (json-encode (vector name value)) "\n")))

(defun await (look)
  "What the function LOOK gives, once that is not nil."
  (let ((end (+ (float-time) patience)) found)
    (while (and (not (setq found (funcall look))) (< (float-time) end))
      (accept-process-output nil 0.05))
    (or found (error "It did not come to pass: %S" look))))

(defun hover-says (word)
  "What eldoc is given at WORD."
  (goto-char (point-min))
  (search-forward word)
  (goto-char (match-beginning 0))
  (let (said)
    (eglot-hover-eldoc-function (lambda (words &rest _) (setq said words)))
    (substring-no-properties (await (lambda () said)))))

(defun own-server ()
  "Connect to the server that the setup names."
  (let ((project-find-functions (list (lambda (folder) (cons 'transient folder)))))
    (apply #'eglot (eglot--guess-contact))))

(find-file "model.py")
(own-server)
(await #'eglot-current-server)
(tell "emacs" emacs-version)
(flymake-start)
(tell "diagnostics"
      (vconcat (mapcar (lambda (each)
                         (vector (line-number-at-pos (flymake-diagnostic-beg each))
                                 (flymake-diagnostic-text each)))
                       (await #'flymake-diagnostics))))
(tell "function" (hover-says "attention(q"))
(tell "expression" (hover-says "scores, axis"))
(when (fboundp 'eglot-inlay-hints-mode)
  (eglot-inlay-hints-mode 1)
  (tell "hints"
        (vconcat (await (lambda ()
                 (eglot--update-hints-1 (point-min) (point-max))
                 (delq nil
                       (mapcar (lambda (overlay)
                                 (and (overlay-get overlay 'eglot--inlay-hint)
                                      (substring-no-properties
                                       (or (overlay-get overlay 'before-string)
                                           (overlay-get overlay 'after-string)))))
                               (overlays-in (point-min) (point-max)))))))))
(goto-char (point-min))
(search-forward "def clipped")
(let* ((actions (eglot-code-actions (point) (point)))
       (add (seq-find (lambda (action) (string-match-p "Add example inputs" (plist-get action :title)))
                      actions)))
  (tell "actions" (vconcat (mapcar (lambda (action) (plist-get action :title)) actions)))
  (let ((server (eglot-current-server)))
    (if (fboundp 'eglot-execute)
        (eglot-execute server add)
      (eglot--apply-workspace-edit (plist-get add :edit)))))
(tell "text" (buffer-substring-no-properties (point-min) (point-max)))
(eglot-shutdown (eglot-current-server))
