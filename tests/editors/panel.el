;;; What the tests do in Emacs with the panel in a browser: Emacs is the browser, too.

(require 'url)

(open-model)
(defvar links nil "The links that a browser was started with.")
(setq browse-url-browser-function (lambda (url &rest _) (push url links)))
(search-forward "def relu")
(jaxsight-panel)
(tell "links" (length links))
(defvar page nil "The address of the page, which the link leads to.")
(with-current-buffer (url-retrieve-synchronously (car links) t)
  (goto-char (point-min))
  (tell "page" (and (search-forward "<!DOCTYPE html>" nil t) t))
  (setq page url-current-object))

(defun shown ()
  "The answer to the page's request for the function at the cursor that it was told last."
  (let* ((origin (format "http://127.0.0.1:%d" (url-port page)))
         (at (with-current-buffer events
               (goto-char (point-max))
               (and (re-search-backward "^data: {\"method\":\"jaxsight/cursor\",\"params\":\\(.*\\)}$" nil t)
                    (json-parse-string (match-string 1)))))
         (params (and at `((uri . ,(gethash "uri" (gethash "textDocument" at)))
                           (position . ,(gethash "position" at)))))
         (url-request-method "POST")
         (url-request-extra-headers `(("Content-Type" . "application/json") ("Origin" . ,origin)))
         (url-request-data (json-serialize `((method . "jaxsight/panel") (params . ,params)))))
    (when at
      (with-current-buffer
          (url-retrieve-synchronously (concat origin (url-filename page) "requests") t)
        (prog1 (buffer-string) (kill-buffer))))))

(defvar events (generate-new-buffer "events"))
(let ((stream (make-network-process :name "events" :buffer events :host "127.0.0.1"
                                    :service (url-port page) :coding 'utf-8)))
  (process-send-string
   stream (format "GET %sevents HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"
                  (url-filename page) (url-port page))))

(defun shows (function)
  "Whether the page is answered with FUNCTION."
  (await (lambda () (string-search (format "{\"function\":\"%s\"" function) (or (shown) "")))))

(shows "relu")
(goto-char (point-min))
(search-forward "def attention")
(jaxsight-send-cursor)
(shows "attention")
(tell "followed" t)
(eglot-shutdown (eglot-current-server))
(await (lambda () (not (process-live-p (get-buffer-process events)))))
(tell "ended" t)
