package web

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"kubistro/internal/lab"
)

var errBadPath = lab.Fail(lab.CodeInvalid,
	"檔名不合規定：請使用家目錄裡的相對路徑，不可包含「..」、反斜線或控制字元，長度最多 200 個字元。",
	"This file name isn't allowed: use a path inside the home folder, without \"..\", backslashes or control characters, 200 characters at most.")

// homePath is the file that the address of a request names.
func homePath(r *http.Request) (string, error) {
	raw := chi.URLParam(r, "*")
	if r.URL.RawPath != "" {
		decoded, err := url.PathUnescape(raw)
		if err != nil {
			return "", errBadPath.Because(err)
		}
		raw = decoded
	}
	if raw == "" || len(raw) > 200 || !utf8.ValidString(raw) || strings.ContainsAny(raw, "\\\x7f") ||
		strings.IndexFunc(raw, func(c rune) bool { return c < ' ' }) >= 0 || path.Clean("/"+raw) != "/"+raw {
		return "", errBadPath
	}
	return raw, nil
}

func (s *Server) listFiles(w http.ResponseWriter, r *http.Request) error {
	files, err := s.Lab.ListFiles(r.Context(), learnerOf(r), sessionID(r))
	if err != nil {
		return err
	}
	if files == nil {
		files = []File{}
	}
	writeJSON(w, http.StatusOK, map[string]any{"files": files})
	return nil
}

func etag(f File) string { return `"` + f.Modified.UTC().Format("20060102T150405.000000000") + `"` }

func (s *Server) readFile(w http.ResponseWriter, r *http.Request) error {
	name, err := homePath(r)
	if err != nil {
		return err
	}
	body, f, err := s.Lab.ReadFile(r.Context(), learnerOf(r), sessionID(r), name)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("ETag", etag(f))
	_, err = w.Write(body)
	return ignoreGone(err)
}

// writeFile replaces a file. If-Match with the ETag of the last read, or
// If-None-Match: * for a new file, refuse to overwrite what somebody else wrote.
func (s *Server) writeFile(w http.ResponseWriter, r *http.Request) error {
	name, err := homePath(r)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return lab.Fail(lab.CodeTooLarge,
				"檔案太大了：單一檔案最多 1 MB。",
				"The file is too large: one file can have 1 MB at most.").Because(err)
		}
		return lab.Fail(lab.CodeInvalid, "檔案內容沒有完整送達，請再存一次。", "The file didn't arrive complete. Save it again.").Because(err)
	}
	if bytes.IndexByte(body, 0) >= 0 || !utf8.Valid(body) {
		return lab.Fail(lab.CodeInvalid,
			"編輯器只能儲存 UTF-8 純文字檔。",
			"The editor saves plain text in UTF-8 only.")
	}
	if err := s.unchanged(r, name); err != nil {
		return err
	}
	f, err := s.Lab.WriteFile(r.Context(), learnerOf(r), sessionID(r), name, body)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag(f))
	writeJSON(w, http.StatusOK, f)
	return nil
}

// unchanged enforces the conditions of a write.
func (s *Server) unchanged(r *http.Request, name string) error {
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	if match == "" && none == "" {
		return nil
	}
	_, f, err := s.Lab.ReadFile(r.Context(), learnerOf(r), sessionID(r), name)
	if e := lab.AsError(err); e != nil && e.Code == lab.CodeNotFound {
		if match == "" {
			return nil
		}
		return lab.Fail(lab.CodeConflict,
			"這個檔案已經被刪除。你可以另存新檔。",
			"This file has been deleted in the meantime. You can save it under a new name.")
	}
	if err != nil {
		return err
	}
	if none == "*" {
		return lab.Fail(lab.CodeConflict, "已經有同名的檔案了。", "There is a file of this name already.")
	}
	if match != etag(f) {
		return lab.Fail(lab.CodeConflict,
			"這個檔案在你編輯期間被改過（可能是終端機裡的指令）。請選擇要保留哪一份。",
			"This file was changed while you edited it, perhaps by a command in the terminal. Choose which version to keep.")
	}
	return nil
}

func (s *Server) deleteFile(w http.ResponseWriter, r *http.Request) error {
	name, err := homePath(r)
	if err != nil {
		return err
	}
	if err := s.Lab.DeleteFile(r.Context(), learnerOf(r), sessionID(r), name); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) listEdits(w http.ResponseWriter, r *http.Request) error {
	edits, err := s.Lab.EditRequests(r.Context(), learnerOf(r), sessionID(r))
	if err != nil {
		return err
	}
	if edits == nil {
		edits = []EditRequest{}
	}
	writeJSON(w, http.StatusOK, map[string]any{"edits": edits})
	return nil
}

func (s *Server) finishEdit(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Saved bool `json:"saved"`
	}
	if err := s.readJSON(r, &in); err != nil {
		return err
	}
	if err := s.Lab.FinishEdit(r.Context(), learnerOf(r), sessionID(r), chi.URLParam(r, "edit"), in.Saved); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
