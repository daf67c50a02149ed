package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/getgraft/graft/internal/catalog"
	"github.com/getgraft/graft/internal/servertest"
	"github.com/getgraft/graft/internal/store"
	"github.com/getgraft/graft/internal/store/storetest"
)

// fixture is the source of the tools that the conformance suites call by name; their documentation says what each has
// to do. Its names stand alone, as those of an agent that is bound to one upstream do.
type fixture struct {
	db        *store.DB
	cancelled chan struct{} // gets one for each call of wait_for_cancel that was
}

// startFixture starts a gateway with the fixture's tools, and an agent that has them all in its list, whose token it
// returns.
func startFixture(t *testing.T, opts servertest.Options) (*fixture, *servertest.Kit, string) {
	t.Helper()
	f := &fixture{db: storetest.Open(t, storetest.URL(t), nil), cancelled: make(chan struct{}, 1)}
	opts.Sources, opts.Offer = append(opts.Sources, f), fixtureOffer
	kit := servertest.Start(t, opts)
	agent, token := kit.Agent(t)
	err := kit.DB.As(t.Context(), kit.Owner, func(tx *store.Tx) error {
		for _, tool := range fixtureTools {
			if tool.Name == changingTool {
				continue
			}
			if _, err := tx.Promote(t.Context(), agent.ID, tool.Wire()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f, kit, token
}

// changingTool comes and goes with each call of test_trigger_tool_change.
const changingTool = "test_changing_tool"

// A fixtureTool is a tool with what running it does.
type fixtureTool struct {
	catalog.Tool
	run func(context.Context, *fixture, catalog.Run) (any, error) // a CallToolResult
}

var (
	noInput   = jsontext.Value(`{"type":"object","properties":{}}`)
	withName  = form(`"name":{"type":"string"}`, "name")
	withColor = form(`"color":{"type":"string"}`, "color")
	withOK    = form(`"ok":{"type":"boolean"}`, "ok")
)

// form is the schema of a question whose named fields are required.
func form(properties string, required ...string) jsontext.Value {
	names, err := json.Marshal(append([]string{}, required...))
	if err != nil {
		panic(err) // strings
	}
	return jsontext.Value(fmt.Sprintf(`{"type":"object","properties":{%s},"required":%s}`, properties, names))
}

var fixtureTools = []fixtureTool{
	says("test_simple_text", text("This is a simple text response for testing.")),
	says("test_image_content", image),
	says("test_audio_content", object{"type": "audio", "data": "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=", "mimeType": "audio/wav"}),
	says("test_embedded_resource", resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
	says("test_multiple_content_types", text("Multiple content types test:"), image,
		resource("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`)),
	says("test_reconnection", text("The stream stayed open.")),
	says(changingTool, text("I am listed.")),
	does("test_error_handling", func(context.Context, *fixture, catalog.Run) (any, error) {
		return object{"isError": true, "content": []any{text("This tool intentionally returns an error for testing")}}, nil
	}),
	does("test_tool_with_logging", logsThrice),
	does("test_logging_tool", logsThrice),
	does("test_tool_with_progress", func(_ context.Context, _ *fixture, r catalog.Run) (any, error) {
		for _, done := range []float64{0, 50, 100} {
			r.Client.Progress(catalog.Progress{Done: done, Total: 100, Message: fmt.Sprintf("Completed step %v of 100", done)})
		}
		return content(text("All steps are done.")), nil
	}),
	does("test_trigger_tool_change", func(ctx context.Context, f *fixture, r catalog.Run) (any, error) {
		return content(text("The list has changed.")), f.changeList(ctx, r.Caller)
	}),
	does("test_elicitation", func(ctx context.Context, _ *fixture, r catalog.Run) (any, error) {
		var in struct{ Message string }
		if err := json.Unmarshal(r.Args, &in); err != nil {
			return nil, err
		}
		return asks(ctx, r, catalog.Question{Key: "user", Message: in.Message, Schema: form(
			`"username":{"type":"string","description":"User's response"},"email":{"type":"string","description":"User's email address"}`,
			"username", "email")})
	}).takes(`{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`),
	questions("test_elicitation_sep1034_defaults", catalog.Question{Key: "profile", Message: "Please review your profile", Schema: form(
		`"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},` +
			`"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}`)}),
	questions("test_elicitation_sep1330_enums", catalog.Question{Key: "choices", Message: "Please choose", Schema: form(
		`"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},` +
			`"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"}]},` +
			`"legacyEnum":{"type":"string","enum":["opt1","opt2"],"enumNames":["Option One","Option Two"]},` +
			`"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},` +
			`"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"}]}}`)}),
	questions("test_missing_capability", catalog.Question{Key: "user_name", Message: "What is your name?", Schema: withName}),
	questions("test_streaming_elicitation", catalog.Question{Key: "user_name", Message: "What is your name?", Schema: withName}),
	questions("test_input_required_result_elicitation", catalog.Question{Key: "user_name", Message: "What is your name?", Schema: withName}),
	questions("test_input_required_result_request_state", catalog.Question{Key: "confirm", Message: "Please confirm", Schema: withOK}),
	questions("test_input_required_result_tampered_state", catalog.Question{Key: "confirm", Message: "Please confirm", Schema: withOK}),
	questions("test_input_required_result_capabilities", catalog.Question{Key: "user_name", Message: "What is your name?", Schema: withName}),
	questions("test_input_required_result_multiple_inputs",
		catalog.Question{Key: "user_name", Message: "What is your name?", Schema: withName},
		catalog.Question{Key: "color", Message: "What is your favourite colour?", Schema: withColor}),
	does("test_input_required_result_multi_round", func(ctx context.Context, _ *fixture, r catalog.Run) (any, error) {
		if _, err := r.Client.Ask(ctx, catalog.Question{Key: "step1", Message: "Step 1: What is your name?", Schema: withName}); err != nil {
			return nil, err
		}
		return asks(ctx, r, catalog.Question{Key: "step2", Message: "Step 2: What is your favorite color?", Schema: withColor})
	}),
	says("test_header_param", text("The header and the argument agree.")).
		takes(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`),
	says("json_schema_2020_12_tool", text("The schema is whole.")).
		takes(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
			`"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},` +
			`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},` +
			`"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},` +
			`"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],` +
			`"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},` +
			`"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`),
	does("greet", func(_ context.Context, _ *fixture, r catalog.Run) (any, error) {
		var in struct{ Name string }
		if err := json.Unmarshal(r.Args, &in); err != nil {
			return nil, err
		}
		return content(text("Hello, " + in.Name + "!")), nil
	}),
	does("slow_compute", func(ctx context.Context, _ *fixture, r catalog.Run) (any, error) {
		var in struct{ Seconds float64 }
		if err := json.Unmarshal(r.Args, &in); err != nil {
			return nil, err
		}
		return content(text("Computed.")), takes(ctx, time.Duration(in.Seconds*float64(time.Second)))
	}),
	does("failing_job", func(ctx context.Context, _ *fixture, _ catalog.Run) (any, error) {
		return object{"isError": true, "content": []any{text("The job failed.")}}, takes(ctx, long)
	}),
	does("protocol_error_job", func(ctx context.Context, _ *fixture, _ catalog.Run) (any, error) {
		_ = takes(ctx, long)
		panic("a job that panics")
	}),
	does("confirm_delete", func(ctx context.Context, _ *fixture, r catalog.Run) (any, error) {
		if err := takes(ctx, long); err != nil {
			return nil, err
		}
		return asks(ctx, r, catalog.Question{Key: "confirm", Message: "Delete it?", Schema: form(`"confirm":{"type":"boolean"}`, "confirm")})
	}),
	does("multi_input", func(ctx context.Context, _ *fixture, r catalog.Run) (any, error) {
		if err := takes(ctx, long); err != nil {
			return nil, err
		}
		var both errgroup.Group
		for _, key := range []string{"one", "two"} {
			both.Go(func() error {
				_, err := r.Client.Ask(ctx, catalog.Question{Key: key, Message: "What is your name?", Schema: withName})
				return err
			})
		}
		return content(text("Both were answered.")), both.Wait()
	}),
	does("test_tool_with_task", func(ctx context.Context, _ *fixture, r catalog.Run) (any, error) {
		result, err := asks(ctx, r, catalog.Question{Key: "user_name", Message: "What is your name?", Schema: withName})
		if err != nil {
			return nil, err
		}
		return result, takes(ctx, long)
	}),
	does("wait_for_cancel", func(ctx context.Context, f *fixture, r catalog.Run) (any, error) {
		r.Client.Progress(catalog.Progress{Message: "waiting"})
		<-ctx.Done()
		f.cancelled <- struct{}{}
		return nil, ctx.Err()
	}),
}

// Tools implements catalog.Source.
func (*fixture) Tools(context.Context, store.Caller) ([]catalog.Tool, error) {
	tools := make([]catalog.Tool, len(fixtureTools))
	for i, tool := range fixtureTools {
		tools[i] = tool.Tool
	}
	return tools, nil
}

// Run implements catalog.Source.
func (f *fixture) Run(ctx context.Context, r catalog.Run) (catalog.Output, error) {
	for _, tool := range fixtureTools {
		if tool.Name != r.Tool.Name {
			continue
		}
		result, err := tool.run(ctx, f, r)
		if err != nil {
			return catalog.Output{}, err
		}
		raw, err := json.Marshal(result)
		return catalog.Output{Raw: raw}, err
	}
	return catalog.Output{}, fmt.Errorf("no fixture %q", r.Tool.Name)
}

// long is more than a client that takes tasks waits for a result.
const long = 1200 * time.Millisecond

// takes lets a tool take its time.
func takes(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// changeList lists the changing tool for the caller's agent, or takes it out again.
func (f *fixture) changeList(ctx context.Context, c store.Caller) error {
	return f.db.As(ctx, c, func(tx *store.Tx) error {
		listed, err := tx.Promote(ctx, c.Agent, changingTool)
		if err == nil && !listed {
			_, err = tx.Demote(ctx, c.Agent, changingTool)
		}
		return err
	})
}

// does makes a tool without arguments.
func does(name string, run func(context.Context, *fixture, catalog.Run) (any, error)) fixtureTool {
	return fixtureTool{catalog.Tool{Name: name, Description: "A tool of the conformance suites.", InputSchema: noInput, ReadOnly: true}, run}
}

func (tool fixtureTool) takes(schema string) fixtureTool {
	tool.InputSchema = jsontext.Value(schema)
	return tool
}

// says makes a tool that always answers the same.
func says(name string, blocks ...any) fixtureTool {
	return does(name, func(context.Context, *fixture, catalog.Run) (any, error) { return content(blocks...), nil })
}

// questions makes a tool that asks all of qs at once and tells what was answered.
func questions(name string, qs ...catalog.Question) fixtureTool {
	return does(name, func(ctx context.Context, _ *fixture, r catalog.Run) (any, error) { return asks(ctx, r, qs...) })
}

func asks(ctx context.Context, r catalog.Run, qs ...catalog.Question) (any, error) {
	var blocks []any
	var open catalog.NeedInput
	for _, q := range qs {
		answer, err := r.Client.Ask(ctx, q)
		var needs *catalog.NeedInput
		switch {
		case errors.As(err, &needs):
			open.Questions = append(open.Questions, needs.Questions...)
		case err != nil:
			return nil, err
		default:
			blocks = append(blocks, text(fmt.Sprintf("%s: %s %s", q.Key, answer.Action, answer.Content)))
		}
	}
	if len(open.Questions) > 0 {
		return nil, &open
	}
	return content(blocks...), nil
}

func logsThrice(_ context.Context, _ *fixture, r catalog.Run) (any, error) {
	for _, said := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		r.Client.Log("info", "fixture", jsontext.Value(`"`+said+`"`))
	}
	return content(text("Three messages were logged.")), nil
}

type object = map[string]any

// pixel is a PNG of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

var image = object{"type": "image", "data": pixel, "mimeType": "image/png"}

func text(s string) object { return object{"type": "text", "text": s} }

func resource(uri, kind, s string) object {
	return object{"type": "resource", "resource": object{"uri": uri, "mimeType": kind, "text": s}}
}

func content(blocks ...any) object { return object{"content": blocks} }
