package e2e_test

import (
	"context"
	"fmt"
	"strings"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/getgraft/graft/internal/store"
)

// fixtureOffer has the prompts and resources that the conformance suites ask for by name.
func fixtureOffer(context.Context, store.Caller) (*mcpserver.MCPServer, error) {
	s := mcpserver.NewMCPServer("fixture", "1", mcpserver.WithPromptCapabilities(false), mcpserver.WithResourceCapabilities(false, false),
		mcpserver.WithCompletions())
	addPrompt(s, mcpgo.NewPrompt("test_simple_prompt", mcpgo.WithPromptDescription("A prompt without arguments.")),
		func(map[string]string) []mcpgo.Content {
			return []mcpgo.Content{mcpgo.NewTextContent("This is a simple prompt for testing.")}
		})
	addPrompt(s, mcpgo.NewPrompt("test_prompt_with_arguments", mcpgo.WithPromptDescription("A prompt with arguments."),
		mcpgo.WithArgument("arg1", mcpgo.RequiredArgument()), mcpgo.WithArgument("arg2", mcpgo.RequiredArgument())),
		func(args map[string]string) []mcpgo.Content {
			return []mcpgo.Content{mcpgo.NewTextContent(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", args["arg1"], args["arg2"]))}
		})
	addPrompt(s, mcpgo.NewPrompt("test_prompt_with_embedded_resource", mcpgo.WithPromptDescription("A prompt that embeds a resource."),
		mcpgo.WithArgument("resourceUri", mcpgo.RequiredArgument())),
		func(args map[string]string) []mcpgo.Content {
			return []mcpgo.Content{
				mcpgo.NewEmbeddedResource(mcpgo.TextResourceContents{
					URI: args["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing.",
				}),
				mcpgo.NewTextContent("Please process the embedded resource above."),
			}
		})
	addPrompt(s, mcpgo.NewPrompt("test_prompt_with_image", mcpgo.WithPromptDescription("A prompt with an image.")),
		func(map[string]string) []mcpgo.Content {
			return []mcpgo.Content{mcpgo.NewImageContent(pixel, "image/png"), mcpgo.NewTextContent("Please analyze the image above.")}
		})
	addResource(s, mcpgo.TextResourceContents{
		URI: "test://static-text", MIMEType: "text/plain", Text: "This is the content of the static text resource.",
	})
	addResource(s, mcpgo.BlobResourceContents{URI: "test://static-binary", MIMEType: "image/png", Blob: pixel})
	addResource(s, mcpgo.TextResourceContents{URI: "test://watched-resource", MIMEType: "text/plain", Text: "It does not change."})
	s.AddResourceTemplate(mcpgo.NewResourceTemplate("test://template/{id}/data", "template", mcpgo.WithTemplateMIMEType("application/json")),
		func(_ context.Context, r mcpgo.ReadResourceRequest) ([]mcpgo.ResourceContents, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
			return []mcpgo.ResourceContents{mcpgo.TextResourceContents{
				URI: r.Params.URI, MIMEType: "application/json", Text: fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id),
			}}, nil
		})
	return s, nil
}

// addPrompt adds a prompt whose messages, one for each content, are all the user's.
func addPrompt(s *mcpserver.MCPServer, p mcpgo.Prompt, contents func(args map[string]string) []mcpgo.Content) {
	s.AddPrompt(p, func(_ context.Context, r mcpgo.GetPromptRequest) (*mcpgo.GetPromptResult, error) {
		result := &mcpgo.GetPromptResult{}
		for _, c := range contents(r.Params.Arguments) {
			result.Messages = append(result.Messages, mcpgo.NewPromptMessage(mcpgo.RoleUser, c))
		}
		return result, nil
	})
}

// addResource adds a resource that is always the same; it is TextResourceContents or BlobResourceContents.
func addResource(s *mcpserver.MCPServer, contents mcpgo.ResourceContents) {
	uri, kind := "", ""
	switch c := contents.(type) {
	case mcpgo.TextResourceContents:
		uri, kind = c.URI, c.MIMEType
	case mcpgo.BlobResourceContents:
		uri, kind = c.URI, c.MIMEType
	}
	s.AddResource(mcpgo.NewResource(uri, strings.TrimPrefix(uri, "test://"), mcpgo.WithMIMEType(kind)),
		func(context.Context, mcpgo.ReadResourceRequest) ([]mcpgo.ResourceContents, error) {
			return []mcpgo.ResourceContents{contents}, nil
		})
}
